#pragma once

#include "sim/collectives/planned_collectives.hpp"
#include "sim/simulation.hpp"

namespace stepcast {

/// Runs the one program of a plan for all its workers at once, where groups_have_clocks: no event is needed,
/// because every date follows from those of earlier operations of the program. A collective begins in each
/// group when the group's own last member has called it, and takes the time that NCCL's model gives. So the
/// steps are those of a program for each worker.
/// @return all but what describes how the communication was simulated
SimulationResult run_by_clocks(const Simulation& simulation, const PlannedCollectives& collectives);

}  // namespace stepcast
