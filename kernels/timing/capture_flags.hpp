#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/network/backend.hpp"
#include "models/layer_times/trace.hpp"

namespace stepcast {

/// An estimate with its 95 % confidence interval.
struct Interval {
  double low, middle, high;
};

/// Median of numerator[i] / denominator[i] with its 95 % interval by the percentile bootstrap (2000 resamples
/// of the pairs). Effects that both steps of a pair share, such as a slow drift of the machine, cancel.
/// Source: B. Efron, R. Tibshirani, "An introduction to the bootstrap", 1993, chapter 13.
/// @throws std::invalid_argument if the lengths differ or are zero
Interval median_of_ratios(const std::vector<double>& numerator, const std::vector<double>& denominator,
                          std::uint64_t seed);

/// Adds a flag to the trace if the 95 % bootstrap interval of (sum over layers) / (step without timers
/// inside) leaves 1 +- tolerance. Entry i of both lists belongs to one pair of steps [s].
/// @param seed  of the bootstrap's resamples
void flag_difference(const std::vector<double>& inside, const std::vector<double>& outside, double tolerance,
                     std::uint64_t seed, Trace& trace);

/// Adds a flag to the trace if the sum of the layers' medians, which simulations start from, differs from the
/// median step by more than the tolerance, as it may when samples scatter.
void flag_medians(double tolerance, Trace& trace);

/// The samples of one pass of a layer.
PassSamples& samples_of(LayerTrace& layer, Pass pass);

/// The date in UTC, such as "2026-11-21".
std::string today();

}  // namespace stepcast
