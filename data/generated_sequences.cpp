#include <cmath>
#include <numbers>

#include "data/generated.hpp"
#include "data/generated_draws.hpp"

namespace stepcast {
namespace {

class Sequences : public Dataset {
 public:
  Sequences(const DataOptions& options, const SampleForm& form, std::int64_t first, std::int64_t count)
      : options_(options), form_(form), first_(first), count_(count) {}

  std::int64_t samples() const override { return count_; }

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const Draws draws(options_.seed, first_ + sample, kSample), noise(options_.seed, first_ + sample, kNoise);
    const std::int64_t label = draws.below(0, form_.classes);
    const double phase = draws.uniform(1);
    const auto time = static_cast<double>(form_.input[0]), features = static_cast<double>(form_.input[1]);
    for (std::size_t i = 0; i < input.size(); ++i) {
      const double t = std::floor(static_cast<double>(i) / features) / time;
      const double feature = std::fmod(static_cast<double>(i), features) / features;
      const double turns = static_cast<double>(label + 1) * t + phase + feature;
      input[i] = static_cast<float>(std::sin(2 * std::numbers::pi * turns) +
                                    options_.noise * noise.normal(static_cast<std::uint32_t>(i)));
    }
    targets[0] = static_cast<float>(label);
  }

 private:
  DataOptions options_;
  SampleForm form_;
  std::int64_t first_, count_;
};

}  // namespace

std::unique_ptr<Dataset> generated_sequences(const DataOptions& options, const SampleForm& form,
                                             std::int64_t first, std::int64_t count) {
  return std::make_unique<Sequences>(options, form, first, count);
}

}  // namespace stepcast
