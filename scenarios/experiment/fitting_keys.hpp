#pragma once

#include <string>
#include <vector>

#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// The keys with which an experiment that does not fit into the memory of its devices would fit, each changed
/// alone and as little as was tried, such as "batch_per_worker: 128" and "strategy.recompute: true": smaller
/// batches, recomputation, more micro-batches, mixed precision, partitioned state and more devices a replica.
/// Each is tried by building the experiment again.
/// @param values      those that give `experiment` with `document`
/// @param experiment  build_experiment(document, values, library), whose plan does not fit
std::vector<std::string> fitting_keys(const YamlNode& document, const std::vector<Assignment>& values,
                                      const Experiment& experiment, Library& library);

}  // namespace stepcast
