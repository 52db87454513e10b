#pragma once

#include <map>
#include <memory>

#include "kernels/network/network.hpp"
#include "kernels/timing/capture.hpp"
#include "runtime/devices/rank_shard.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "scenarios/reader/library.hpp"
#include "validate/capture/message_times.hpp"

namespace stepcast {

/// Networks that were captured and that real runs go on to train, in the same memory: the addresses of arrays
/// influence how fast they are read.
struct CapturedNetworks {
  std::map<NetworkVariant, std::unique_ptr<Network>> whole;
  CapturedShards shards;
};

/// Backend and library of the captures.
struct CapturePlace {
  Backend& backend;
  Library& library;
  /// Probed before each turn, so that its reference is the speed of the captures.
  CoreSpeedProbe* speed = nullptr;
};

/// Captures the traces that the points of a validation need, and rank 0 writes them. All ranks capture at
/// once, so that they share the machine as they do when they train; with --sleep rank 0 captures alone.
CapturedNetworks capture_traces(const RankContext& run, const Validation& validation,
                                const ValidationOptions& options, const CapturePlace& place);

/// The objects that all captures of a rank share; it outlives the captures.
struct CaptureShared {
  const RankContext& run;
  const Validation& validation;
  const ValidationOptions& options;
  const CapturePlace& place;
  InStepAllReduceTimes& sums;
};

}  // namespace stepcast
