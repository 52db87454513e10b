#include "kernels/timing/capture_flags.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "core/random.hpp"

namespace stepcast {
namespace {

constexpr std::uint32_t kResamples = 2000;

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double resampled_median(const std::vector<double>& values, RandomKey key) {
  std::vector<double> drawn;
  for (std::size_t i = 0; i < values.size(); ++i) {
    key.item = static_cast<std::uint32_t>(i);
    drawn.push_back(values[uniform_index(key, values.size())]);
  }
  return middle_of(std::move(drawn));
}

}  // namespace

Interval median_of_ratios(const std::vector<double>& numerator, const std::vector<double>& denominator,
                          std::uint64_t seed) {
  if (numerator.empty() || numerator.size() != denominator.size()) {
    throw std::invalid_argument(
        "median_of_ratios: expected equal numbers of numerators and denominators, at least one");
  }
  std::vector<double> ratios;
  for (std::size_t i = 0; i < numerator.size(); ++i) ratios.push_back(numerator[i] / denominator[i]);
  std::vector<double> medians;
  for (std::uint32_t i = 0; i < kResamples; ++i) {
    medians.push_back(resampled_median(ratios, {.seed = seed, .purpose = Purpose::bootstrap, .step = i}));
  }
  std::sort(medians.begin(), medians.end());
  const auto at = [&](double share) { return medians[static_cast<std::size_t>(share * (kResamples - 1))]; };
  return {at(0.025), middle_of(ratios), at(0.975)};
}

void flag_difference(const std::vector<double>& inside, const std::vector<double>& outside, double tolerance,
                     std::uint64_t seed, Trace& trace) {
  const Interval ratio = median_of_ratios(inside, outside, seed);
  if (ratio.low >= 1 - tolerance && ratio.high <= 1 + tolerance) return;
  trace.flags.push_back(
      fmt::format("the sum over layers differs from steps without timers inside by {:+.1f} % (95 % interval "
                  "{:+.1f} to {:+.1f} %)",
                  100 * (ratio.middle - 1), 100 * (ratio.low - 1), 100 * (ratio.high - 1)));
}

void flag_medians(double tolerance, Trace& trace) {
  const double ratio = step_time(trace) / median(trace.step_seconds);
  if (std::abs(ratio - 1) <= tolerance) return;
  trace.flags.push_back(fmt::format(
      "the sum of the layers' medians differs from the median step without timers inside by {:+.1f} %",
      100 * (ratio - 1)));
}

PassSamples& samples_of(LayerTrace& layer, Pass pass) {
  switch (pass) {
    case Pass::forward:
      return layer.forward;
    case Pass::backward_data:
      return layer.backward_data;
    case Pass::backward_weights:
      return layer.backward_weights;
    case Pass::update:
      break;
  }
  return layer.update;
}

std::string today() {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

}  // namespace stepcast
