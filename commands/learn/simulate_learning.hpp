#pragma once

#include <filesystem>

#include "report/results/results.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// The reason why an experiment cannot learn in a simulation; empty if it can.
/// @throws InputError for invalid data or checkpoints
std::string unsupported_simulated_learning(const Experiment& experiment);

/// Memory of the networks of all ranks in one process.
Bytes learning_memory(const Experiment& experiment);

struct SimulatedLearning {
  std::vector<Row> rows;  ///< of Learner::evaluate; `seconds` is the time of the simulated cluster
  double seconds = 0;     ///< until the last program ended, as in a simulation without values
};

/// Trains all ranks of an experiment with real arithmetic in one process. The simulated clock orders the
/// operations, so each gradient is computed with the same parameters as on the simulated cluster. A process
/// can make one call (see Engine).
/// @param batch       samples per forward and backward pass
/// @param checkpoint  file for the parameters at the end; empty: none
SimulatedLearning simulate_learning(const Experiment& experiment, std::int64_t batch,
                                    const std::filesystem::path& checkpoint = {});

}  // namespace stepcast
