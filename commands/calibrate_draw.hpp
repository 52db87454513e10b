#pragma once

#include <vector>

#include "scenarios/library.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast {

/// Values of the calibrated keys with which the fed-in points are met, one after the other, for one draw of
/// the assumptions. Where a figure cannot be met inside the range, the nearer end. Forks a process a
/// simulation.
std::vector<double> calibrated_values(const Scenario& scenario, const std::vector<double>& inputs,
                                      Library& library);

}  // namespace stepcast
