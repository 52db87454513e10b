#include <cmath>

#include "data/generated.hpp"
#include "data/generated_draws.hpp"

namespace stepcast {
namespace {

constexpr int kBlobs = 6;  // of a pattern
constexpr std::uint32_t kNumbersOfBlob = 4;
constexpr std::int64_t kMostShift = 2;  // [pixels]

class Images : public Dataset {
 public:
  Images(const DataOptions& options, const SampleForm& form, std::int64_t first, std::int64_t count)
      : options_(options), form_(form), first_(first), count_(count) {
    for (std::int64_t k = 0; k < form.classes; ++k) add_pattern(k);
  }

  std::int64_t samples() const override { return count_; }

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const Draws draws(options_.seed, first_ + sample, kSample), noise(options_.seed, first_ + sample, kNoise);
    const std::int64_t label = draws.below(0, form_.classes);
    const double strength = draws.uniform(1, 0.7, 1.3);
    const std::int64_t down = draws.below(2, 2 * kMostShift + 1) - kMostShift;
    const std::int64_t right = draws.below(3, 2 * kMostShift + 1) - kMostShift;
    const std::vector<float>& pattern = patterns_[static_cast<std::size_t>(label)];
    for (std::size_t i = 0; i < input.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t channel = at / (height() * width());
      const std::int64_t y = at / width() % height() - down, x = at % width() - right;
      const bool inside = y >= 0 && y < height() && x >= 0 && x < width();
      const double seen =
          inside ? pattern[static_cast<std::size_t>((channel * height() + y) * width() + x)] : 0;
      input[i] =
          static_cast<float>(strength * seen + options_.noise * noise.normal(static_cast<std::uint32_t>(i)));
    }
    targets[0] = static_cast<float>(label);
  }

 private:
  std::int64_t height() const { return form_.input[1]; }
  std::int64_t width() const { return form_.input[2]; }

  /// A sum of Gaussian bumps, up or down, in each channel; of mean square 1.
  void add_pattern(std::int64_t label) {
    const Draws draws(options_.seed, label, kPatterns);
    std::vector<float> pattern(sample_numbers(form_.input));
    for (std::int64_t channel = 0; channel < form_.input[0]; ++channel) {
      for (int blob = 0; blob < kBlobs; ++blob) {
        const std::uint32_t n = kNumbersOfBlob * static_cast<std::uint32_t>(channel * kBlobs + blob);
        const double y0 = draws.uniform(n) * static_cast<double>(height());
        const double x0 = draws.uniform(n + 1) * static_cast<double>(width());
        const double size =
            draws.uniform(n + 2, 0.06, 0.15) * static_cast<double>(std::min(height(), width()));
        const double sign = draws.uniform(n + 3) < 0.5 ? -1 : 1;
        for (std::int64_t y = 0; y < height(); ++y) {
          for (std::int64_t x = 0; x < width(); ++x) {
            const double far =
                (std::pow(static_cast<double>(y) - y0, 2) + std::pow(static_cast<double>(x) - x0, 2)) /
                (2 * size * size);
            pattern[static_cast<std::size_t>((channel * height() + y) * width() + x)] +=
                static_cast<float>(sign * std::exp(-far));
          }
        }
      }
    }
    double square = 0;
    for (const float one : pattern) square += static_cast<double>(one) * one;
    const auto scale = static_cast<float>(std::sqrt(static_cast<double>(pattern.size()) / square));
    for (float& one : pattern) one *= scale;
    patterns_.push_back(std::move(pattern));
  }

  DataOptions options_;
  SampleForm form_;
  std::int64_t first_, count_;
  std::vector<std::vector<float>> patterns_;  ///< of each class
};

}  // namespace

std::unique_ptr<Dataset> generated_images(const DataOptions& options, const SampleForm& form,
                                          std::int64_t first, std::int64_t count) {
  return std::make_unique<Images>(options, form, first, count);
}

}  // namespace stepcast
