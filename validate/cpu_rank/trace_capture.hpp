#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "kernels/network/network.hpp"
#include "kernels/timing/capture.hpp"
#include "runtime/devices/rank_shard.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "scenarios/reader/library.hpp"
#include "validate/capture/interleaved_capture.hpp"
#include "validate/capture/message_times.hpp"

namespace stepcast {

/// Networks that were captured and that real runs go on to train, in the same memory: the addresses of arrays
/// influence how fast they are read.
struct CapturedNetworks {
  std::map<NetworkVariant, std::shared_ptr<Network>> whole;
  CapturedShards shards;
};

/// Backend and library of the captures.
struct CapturePlace {
  Backend& backend;
  Library& library;
  /// Probed before each turn, so that its reference is the speed of the captures.
  CoreSpeedProbe* speed = nullptr;
};

/// The objects that all captures of a rank share; it outlives the captures.
struct CaptureShared {
  const RankContext& run;
  const Validation& validation;
  const ValidationOptions& options;
  const CapturePlace& place;
  InStepTimes& in_step;
};

/// Captures the traces that the points of a validation need, once for each forecast, and rank 0 writes them.
/// All ranks capture at once, so that they share the machine as they do when they train; with --sleep rank 0
/// captures alone.
class TraceCaptures {
 public:
  TraceCaptures(const RankContext& run, const Validation& validation, const ValidationOptions& options,
                const CapturePlace& place);
  TraceCaptures(const TraceCaptures&) = delete;

  /// Begins the captures for the next forecast, in which all networks take turns.
  void begin() { turn_ = 0; }

  /// Captures until this share of the planned turns has been made.
  void take_turns(double share = 1);

  /// Ends the captures for a forecast, and times the compression of gradients and the arithmetic of
  /// strategies. The traces, the compression times, and among the measured links the all-reduces within
  /// captured steps and the arithmetic, replace those of the forecast before. The first call also times the
  /// messages of servers.
  void write();

  /// The captured networks, with this rank's input.
  CapturedNetworks networks() const;

 private:
  void take_missing_turns();
  void time_compressions();

  CapturePlace place_;
  InStepTimes in_step_;
  CaptureShared shared_;
  std::vector<CaptureJob> jobs_;
  std::map<std::filesystem::path, double> arrays_;  ///< on rank 0, of time_arithmetic_of [s]
  bool first_ = true;
  int turns_ = 0, turn_ = 0;  ///< of one forecast: planned, made
};

}  // namespace stepcast
