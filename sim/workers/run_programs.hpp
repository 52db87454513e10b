#pragma once

#include "sim/collectives/planned_collectives.hpp"

namespace stepcast {

/// Runs the program of every worker with these collectives, on a new clock that starts at 0.
/// @throws std::logic_error if the programs deadlock
SimulationResult run_programs(const Simulation& simulation, PlannedCollectives& collectives);

}  // namespace stepcast
