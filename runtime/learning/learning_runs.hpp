#pragma once

#include "runtime/p2p/device_payloads.hpp"
#include "runtime/p2p/point_to_point.hpp"
#include "runtime/ranks/rank_context.hpp"
#include "runtime/runs/collective_backend.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "runtime/transport/progress_thread.hpp"

namespace stepcast {

/// Why an experiment with `learning` cannot learn in a real run; empty if it can.
/// @throws InputError for unusable data or checkpoints
std::string unsupported_learning(const Experiment& experiment);

/// The objects that all learning runs of a rank share.
struct LearningWorld {
  const RankContext& run;
  Backend& backend;
  ProgressThread& collective_thread;
  PointToPoint& messages;
  CompletionQueue& completions;
  int& last_run;                                                               ///< number of the last run
  std::function<CollectiveBackend(const Plan&)> make_collective_backend = {};  ///< as RunResources has it
  /// Like RunResources::device_payloads, with channels opened for these plans.
  DevicePayloads* device_payloads = nullptr;
};

/// Trains every point that has `learning` for real, one after the other. Rank 0 writes loss and accuracy on
/// test data, against mini-batches and seconds, to `learning.jsonl`, and a checkpoint for each point at its
/// end.
void learn_all(const LearningWorld& world, const Validation& validation, Library& library);

}  // namespace stepcast
