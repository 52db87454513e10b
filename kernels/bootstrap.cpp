#include "kernels/bootstrap.hpp"

#include <algorithm>
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
    throw std::invalid_argument("median_of_ratios: as many numerators as denominators, at least one");
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

}  // namespace stepcast
