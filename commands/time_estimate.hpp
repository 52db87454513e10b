#pragma once

#include "commands/run.hpp"
#include "core/units.hpp"
#include "scenarios/library.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast {

/// Processor time that a run will take: some of its points, evenly spread, are simulated in the middle of the
/// assumptions, and one draw is calibrated.
/// @param simulations  of all points, draws, doubled resources and noise left out
Seconds estimated_time(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                       int draws, double simulations);

/// "some 12 s of processor time, 6 s with 2 processes"
std::string time_text(Seconds processor_time, int processes);

}  // namespace stepcast
