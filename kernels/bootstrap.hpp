#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

struct Interval {
  double low, middle, high;
};

/// Median of numerator[i] / denominator[i] with its 95 % interval by the percentile bootstrap (2000 resamples
/// of the pairs). What is common to a pair, such as a slow drift of the machine, cancels. Source: B. Efron,
/// R. Tibshirani, "An introduction to the bootstrap", 1993, chapter 13.
/// @throws std::invalid_argument if the lengths differ or are zero
Interval median_of_ratios(const std::vector<double>& numerator, const std::vector<double>& denominator,
                          std::uint64_t seed);

}  // namespace stepcast
