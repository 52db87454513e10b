#include <cmath>

#include "data/generated.hpp"
#include "data/generated_draws.hpp"

namespace stepcast {
namespace {

constexpr double kDeep = 10;  // depth of the calorimeter, in units in which the profile is t^a exp(-b t)

class Showers : public Dataset {
 public:
  Showers(const DataOptions& options, const SampleForm& form, std::int64_t first, std::int64_t count)
      : options_(options), form_(form), first_(first), count_(count) {}

  std::int64_t samples() const override { return count_; }

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const Draws draws(options_.seed, first_ + sample, kSample), noise(options_.seed, first_ + sample, kNoise);
    const bool real = draws.below(0, 2) == 1;
    const double energy = draws.uniform(1, 0.5, 2);
    const double a = draws.uniform(2, 1.5, 3.5), b = draws.uniform(3, 0.4, 0.6);
    const double y0 = draws.uniform(4, 0.4, 0.6), x0 = draws.uniform(5, 0.4, 0.6);
    const std::int64_t depth = form_.input[1], height = form_.input[2], width = form_.input[3];
    double sum = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double t = kDeep * center(at / (height * width) % depth, depth);
      const double y = center(at / width % height, height) - y0, x = center(at % width, width) - x0;
      const double wide = 0.03 + 0.01 * t;  // a shower spreads as it goes in
      const double profile = std::pow(t, a) * std::exp(-b * t) * std::exp(-std::hypot(y, x) / wide);
      const auto n = static_cast<std::uint32_t>(i);
      const double flat = noise.uniform(n) < 0.05 ? 1 : 0;  // a cell in twenty is hit, anywhere
      // Cells fluctuate more the less they get, in proportion to the root.
      const double mean = real ? profile : flat;
      const double cell = std::max(0.0, mean + options_.noise * std::sqrt(mean) * noise.normal(n));
      input[i] = static_cast<float>(cell);
      sum += cell;
    }
    const double scale = sum > 0 ? energy * 0.05 * static_cast<double>(input.size()) / sum : 0;
    for (float& cell : input) cell = static_cast<float>(scale * cell);
    targets[0] = real ? 1 : 0;
  }

 private:
  static double center(std::int64_t cell, std::int64_t cells) {
    return (static_cast<double>(cell) + 0.5) / static_cast<double>(cells);
  }

  DataOptions options_;
  SampleForm form_;
  std::int64_t first_, count_;
};

}  // namespace

std::unique_ptr<Dataset> generated_showers(const DataOptions& options, const SampleForm& form,
                                           std::int64_t first, std::int64_t count) {
  return std::make_unique<Showers>(options, form, first, count);
}

}  // namespace stepcast
