#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

struct Interval {
  double low, middle, high;
};

/// Ratio of the medians of two samples with its 95 % interval by the percentile bootstrap (2000 resamples of
/// both). Source: B. Efron, R. Tibshirani, "An introduction to the bootstrap", 1993, chapter 13.
Interval ratio_of_medians(const std::vector<double>& numerator, const std::vector<double>& denominator,
                          std::uint64_t seed);

}  // namespace stepcast
