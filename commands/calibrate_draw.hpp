#pragma once

#include <vector>

#include "scenarios/library.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast {

/// Of one draw of the assumptions, an entry a calibration.
struct Calibrated {
  std::vector<double> values;   ///< of the calibrated keys
  std::vector<double> reached;  ///< what the fed-in figures become with them
};

/// Values of the calibrated keys with which the fed-in points are met, one after the other, for one draw of
/// the assumptions. Where a figure cannot be met inside the range, the nearer end. Forks a process a
/// simulation.
Calibrated calibrated_draw(const Scenario& scenario, const std::vector<double>& inputs, Library& library);

/// Whether a figure was reached: what is left by the search, or that the range ends before.
bool is_met(const Feed& feed, double reached);

}  // namespace stepcast
