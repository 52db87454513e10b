#pragma once

#include "report/results.hpp"
#include "scenarios/experiment.hpp"

namespace stepcast {

/// Why an experiment cannot learn in a simulation, as a line; empty where it can.
/// @throws InputError for data and checkpoints that are not what they should be
std::string why_not_simulated_learning(const Experiment& experiment);

/// Memory that the networks of all its ranks take in one process.
Bytes learning_memory(const Experiment& experiment);

/// Trains all ranks of an experiment for real, in one process, while the clock is the simulated one: whose
/// gradient meets which parameters is as on the simulated cluster. Rows of loss and accuracy as of
/// Learner::rows, `seconds` those of the cluster. Call it once a process (Engine).
/// @param batch  samples of a pass
std::vector<Row> simulate_learning(const Experiment& experiment, std::int64_t batch);

}  // namespace stepcast
