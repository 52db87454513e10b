#pragma once

#include <map>

#include "report/results/results.hpp"
#include "scenarios/reader/scenario.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

/// Noise that a simulation leaves out to measure its cost. `noise` stands for jitter and stragglers.
enum class Without { nothing, jitter, noise };

/// True if the scenario sets the key that makes leaving this noise out change a point: noise.jitter for
/// Without::jitter, noise.straggler_share or noise.stragglers for Without::noise.
bool may_change(const Scenario& scenario, Without what);

/// Removes noise. Returns true if that changes the simulation: there is jitter (Without::jitter), or there
/// are stragglers (Without::noise).
bool leave_out(Without what, Noise& noise);

/// Adds the columns jitter_seconds (step time minus step time without jitter) and straggler_seconds (step
/// time without jitter minus step time without jitter and stragglers). For a training with faults it also
/// adds these times summed over all steps: lost_to_jitter_seconds and lost_to_stragglers_seconds.
/// @param with     row of the simulation with all its noise
/// @param without  rows of simulations without noise; those that would not differ are missing
void add_noise_losses(Row& row, const Row& with, const std::map<Without, Row>& without);

}  // namespace stepcast
