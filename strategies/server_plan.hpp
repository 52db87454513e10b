#pragma once

#include <functional>
#include <string>

#include "strategies/compression.hpp"
#include "strategies/server_options.hpp"
#include "strategies/strategy.hpp"

namespace stepcast {

/// What a worker (or one of the ranks that make it up) runs with.
struct ServerClient {
  Servers servers;     ///< empty: a rank that follows another one of its group
  LocalWork quantize;  ///< of an update that is compressed
  MiniBatch batch;
};

/// The strategy's own part of a plan with servers.
struct ServerStrategy {
  ServerRules rules;  ///< clients and take are filled in
  int backup_workers = 0;
  bool answer_first = false;
  double held_arrays = 0;           ///< of the model's size, that a worker's device holds beside the training
  double updates_a_step = 1;        ///< of a worker
  GradientCompression compression;  ///< of updates; parameters travel whole
  /// What came, in `update` (synchronous: its sum, in `gradients`), to the parameters.
  /// @param summed  gradients in it
  std::function<void(Arrays&, const Slice& elements, int summed)> apply;
  Arithmetic pull;                                                       ///< of a sub-master, as of a server
  std::function<std::function<Program(Worker&)>(ServerClient)> program;  ///< of a worker
};

/// Samples of a worker in a step, as `batch_per_worker` (of each rank of a group) or `global_batch` say.
std::int64_t samples_of_worker(const Setting& setting, const ServerOptions& options);

/// A role for each rank of each worker, then for each shard, then for each sub-master. Workers are
/// consecutive ranks, and are dealt to sub-masters in turn.
/// @throws InputError for servers that have no place, and groups that do not divide the workers
Plan server_plan(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy);

}  // namespace stepcast
