#pragma once

#include <string>
#include <vector>

#include "forecast/forecast.hpp"

namespace stepcast {

/// What a run says about its measurements: each beside its forecast; how many draws agree with them; and the
/// assumptions of which three quarters of the draws lie in the lowest or highest quarter of their range.
std::vector<std::string> measured_lines(const Scenario& scenario, const Simulations& all);

}  // namespace stepcast
