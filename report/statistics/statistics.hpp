#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

/// The p-quantile of the samples, p in [0, 1]: linear interpolation between order statistics at h = (n - 1)
/// p, the default of R and NumPy. Source: R. J. Hyndman, Y. Fan, "Sample Quantiles in Statistical Packages",
/// The American Statistician 50(4), 1996, definition 7.
/// @throws std::invalid_argument without samples or for p outside [0, 1]
double quantile(std::vector<double> samples, double p);

double median_of(std::vector<double> samples);

/// The arithmetic mean. @throws std::invalid_argument without samples
double mean(const std::vector<double>& samples);

/// The statistic that makes one step time of the times of several steps. The median is taken where steps
/// differ only by accident. Where kernels compute, the mean is taken: cores that switch between two speeds
/// make two kinds of steps, and the median would be that of one kind or of the other.
enum class StepStatistic { median, mean };

/// A median with a lower and an upper quantile around it.
struct Quantiles {
  double low = 0;
  double median = 0;
  double high = 0;
};

/// The 5 %, 50 % and 95 % quantiles of the draws; nine out of ten draws lie between the outer ones.
Quantiles forecast_interval(const std::vector<double>& draws);

/// Options of the bootstrap. Equal seeds give equal intervals on every machine.
struct Bootstrap {
  std::uint64_t seed = 0;
  int resamples = 1000;
  double confidence = 0.95;
};

/// The median of the samples and its confidence interval by the percentile bootstrap: the median of a
/// repeated measurement would lie in the interval with the given confidence. Source: B. Efron, "Bootstrap
/// Methods: Another Look at the Jackknife", The Annals of Statistics 7(1), 1979.
Quantiles median_interval(const std::vector<double>& samples, const Bootstrap& bootstrap);

}  // namespace stepcast
