#pragma once

#include <vector>

#include "sim/simulation.hpp"

namespace stepcast {

/// The factor on compute times of workers that keep a common pace, that of the slowest of their devices: the
/// expected maximum of as many lognormal factors of Noise::device_spread, of which the median is 1. 1 for
/// asynchronous plans, whose throughput is that of the mean device.
/// Source of the order statistic: G. Blom, Statistical Estimates and Transformed Beta-Variables (1958).
double slowest_device_factor(const Plan& plan, const Noise& noise);

/// Steps simulated with that factor on all compute times, with what exceeds the median device's compute as
/// waiting for the slowest.
void attribute_to_slowest(double factor, std::vector<StepSeconds>& steps);

}  // namespace stepcast
