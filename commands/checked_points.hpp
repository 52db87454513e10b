#pragma once

#include "scenarios/experiment.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast {

/// Builds every point once before any is simulated, so that a bad value is found first.
/// @return the largest. Its plan's `flags` are lines to print: the doubts about the traces of all points, and
/// what of `noise` does nothing at any of them
Experiment checked_points(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library);

}  // namespace stepcast
