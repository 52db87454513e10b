#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/timing/capture.hpp"
#include "kernels/timing/compression_timing.hpp"
#include "runtime/devices/rank_shard.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "scenarios/reader/library.hpp"
#include "validate/capture/captured_exchanges.hpp"

namespace stepcast {

/// Capture of the layer times of one network, or of this rank's shard of it, made in several turns of some
/// steps each.
struct CaptureJob {
  NetworkVariant variant;
  std::string status;                                 ///< status text of the rank during the capture
  std::filesystem::path file;                         ///< of the trace of all ranks
  RankShard shard;                                    ///< the part of the network that this rank computes
  std::unique_ptr<Capture> capture;                   ///< null: this rank only takes part in barriers
  int pairs = 1;                                      ///< pairs of steps in a turn
  std::shared_ptr<CapturedExchanges> exchanges = {};  ///< of a shard
};

/// Plans the captures for each of the forecasts, once, before the first turn: each round has a turn of every
/// job, and there are as many rounds as fit into the time budget. All ranks call it.
/// @param forecasts  number of forecasts, which share the time budget
/// @return the number of turns for one forecast
int plan_turns(const RankContext& run, bool sleeping, int forecasts, std::vector<CaptureJob>& jobs);

/// One turn of a capture. All ranks call it.
/// @param speed  probed before the turn; null: not measured
void capture_turn(const RankContext& run, CoreSpeedProbe* speed, const CaptureJob& job);

/// Where compressed gradients come from.
struct GradientSource {
  GradientDevice device = {};  ///< device whose memory holds the gradients; default: the host's memory
  /// The captured network of a variant, in the host's memory; null or empty: gradients are random numbers.
  std::function<Network*(const NetworkVariant&)> network = {};
};

/// Times the kernels that compress gradients of each model, on all ranks at once, unless earlier ranks did
/// (measured_before). Rank 0 writes the samples of all ranks.
void capture_compressions(const RankContext& run, const Validation& validation,
                          const ValidationOptions& options, Library& library, const GradientSource& source);

}  // namespace stepcast
