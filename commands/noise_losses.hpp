#pragma once

#include <map>

#include "report/results.hpp"
#include "scenarios/scenario.hpp"
#include "strategies/conditions.hpp"

namespace stepcast {

/// What is left out of a simulation to see what it costs.
enum class Without { nothing, jitter, noise };  ///< noise: jitter and stragglers

/// Whether leaving it out may change some point, by the keys that are given: jitter, or (noise) a share of
/// stragglers.
bool may_change(const Scenario& scenario, Without what);

/// @return whether that changes the simulation: there is jitter, or (noise) there are stragglers
bool leave_out(Without what, Noise& noise);

/// Columns jitter_seconds and straggler_seconds of a step: by how much it is longer than without jitter, and
/// that longer than without stragglers too. In a training with faults also what comes to over all its steps:
/// lost_to_jitter_seconds and lost_to_stragglers_seconds.
/// @param with    a row of the simulation that has all its noise
/// @param without the same without it; what makes no difference is missing
void add_noise_losses(Row& row, const Row& with, const std::map<Without, Row>& without);

}  // namespace stepcast
