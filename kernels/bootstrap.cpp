#include "kernels/bootstrap.hpp"

#include <algorithm>

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

Interval ratio_of_medians(const std::vector<double>& numerator, const std::vector<double>& denominator,
                          std::uint64_t seed) {
  std::vector<double> ratios;
  for (std::uint32_t i = 0; i < kResamples; ++i) {
    const RandomKey above{.seed = seed, .purpose = Purpose::bootstrap, .worker = 0, .step = i, .item = 0};
    const RandomKey below{.seed = seed, .purpose = Purpose::bootstrap, .worker = 1, .step = i, .item = 0};
    ratios.push_back(resampled_median(numerator, above) / resampled_median(denominator, below));
  }
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double share) { return ratios[static_cast<std::size_t>(share * (kResamples - 1))]; };
  return {at(0.025), middle_of(numerator) / middle_of(denominator), at(0.975)};
}

}  // namespace stepcast
