#include "report/statistics/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <random>
#include <stdexcept>

namespace stepcast {

double quantile(std::vector<double> samples, double p) {
  if (samples.empty()) throw std::invalid_argument("quantile: no samples");
  if (!(p >= 0 && p <= 1)) throw std::invalid_argument("quantile: p must be in [0, 1]");
  const double h = (samples.size() - 1) * p;
  const std::ptrdiff_t below = std::floor(h);
  const auto lower = samples.begin() + below;
  std::nth_element(samples.begin(), lower, samples.end());
  if (h == std::floor(h)) return *lower;
  const double upper = *std::min_element(lower + 1, samples.end());
  return *lower + (h - std::floor(h)) * (upper - *lower);
}

double median_of(std::vector<double> samples) {
  return quantile(std::move(samples), 0.5);
}

double mean(const std::vector<double>& samples) {
  if (samples.empty()) throw std::invalid_argument("mean: no samples");
  return std::accumulate(samples.begin(), samples.end(), 0.0) / samples.size();
}

double uninterrupted_mean(const std::vector<double>& seconds) {
  const double limit = 3 * median_of(seconds);
  std::vector<double> kept;
  std::ranges::copy_if(seconds, std::back_inserter(kept), [limit](double one) { return one <= limit; });
  return mean(kept);
}

double value_of(StepStatistic statistic, const std::vector<double>& samples) {
  return statistic == StepStatistic::mean ? mean(samples) : median_of(samples);
}

Quantiles forecast_interval(const std::vector<double>& draws) {
  return {quantile(draws, 0.05), median_of(draws), quantile(draws, 0.95)};
}

Estimate estimate_of(StepStatistic statistic, const std::vector<double>& samples,
                     const Bootstrap& bootstrap) {
  if (bootstrap.resamples < 1) throw std::invalid_argument("estimate_of: resamples must be >= 1");
  // The output of the random engine is standardised; that of the standard distributions is not.
  std::mt19937_64 engine(bootstrap.seed);
  std::vector<double> values;
  std::vector<double> resample(samples.size());
  for (int i = 0; i < bootstrap.resamples; ++i) {
    for (double& sample : resample) sample = samples[engine() % samples.size()];
    values.push_back(value_of(statistic, resample));
  }
  const double tail = (1 - bootstrap.confidence) / 2;
  return {quantile(values, tail), value_of(statistic, samples), quantile(values, 1 - tail)};
}

}  // namespace stepcast
