#pragma once

#include "scenarios/experiment.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast {

struct CheckedPoints {
  Experiment largest;  ///< its plan's `flags` are lines to print: the doubts about the traces of all points,
                       ///< and what keys have no effect at any of them
  std::vector<std::string> misfits;  ///< a line each point that does not fit in the middle of the assumptions
};

/// Builds every point once before any is simulated, so that a bad value is found first.
CheckedPoints checked_points(const Scenario& scenario, const std::vector<std::size_t>& points,
                             Library& library);

}  // namespace stepcast
