#pragma once

#include "sim/collectives.hpp"

namespace stepcast {

/// Runs the program of every worker over such traffic, from the start of a clock of its own.
/// @throws std::logic_error if programs wait for each other for ever
SimulationResult play_run(const Simulation& simulation, Collectives& traffic);

}  // namespace stepcast
