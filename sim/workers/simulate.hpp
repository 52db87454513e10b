#pragma once

#include "sim/simulation.hpp"

namespace stepcast {

/// Runs the program of every worker on the simulated cluster. A process can make one call (see Engine).
/// @throws std::logic_error if the programs deadlock
SimulationResult simulate(const Simulation& simulation);

}  // namespace stepcast
