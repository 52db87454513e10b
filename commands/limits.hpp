#pragma once

#include <string>

#include "commands/run.hpp"
#include "core/units.hpp"
#include "scenarios/experiment.hpp"

namespace stepcast {

/// What a run will take, said before it starts.
struct RunSize {
  std::size_t points = 0;
  double simulations = 0;
  int workers = 0;       ///< of the largest point
  Bytes process_memory;  ///< of one simulation of the largest point
};

/// Of one simulation, beyond what any process takes: links, workers, messages, records.
Bytes simulated_memory(const Experiment& experiment);

RunSize estimated(const Experiment& largest, std::size_t points, int simulations);
std::string to_string(const RunSize& size, const std::string& scenario);

/// Throws LimitError where the processes together would need more than the limit.
void check_limits(const RunSize& size, const RunOptions& options);

/// The same for processes that take so much each. @param limit  with its unit; empty: the default
void check_process_memory(Bytes each, int processes, const std::string& limit);

/// Reads `shard_text` into shard and shards. Throws InputError.
void read_shard(RunOptions& options);

}  // namespace stepcast
