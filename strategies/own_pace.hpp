#pragma once

#include <vector>

#include "strategies/conditions.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// When the program of a rank starts [s]: workers without a common pace one after the other, over
/// Noise::start_spread; all others at once.
double start_seconds(const Plan& plan, const Noise& noise, int rank);

/// One step of workers without a common pace: workers / sum of their rates, each from the end of its first
/// step until one worker has ended all of its.
/// @param ends  of each program's steps, rising [s]; empty: it does not train
/// @throws std::invalid_argument if there are none
double own_pace_step_seconds(const std::vector<std::vector<double>>& ends);

}  // namespace stepcast
