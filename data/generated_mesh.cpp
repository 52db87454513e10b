#include <array>
#include <cmath>

#include "data/generated.hpp"
#include "data/generated_draws.hpp"

namespace stepcast {
namespace {

constexpr std::uint32_t kDiscs = 4;

struct Disc {
  double y = 0, x = 0, radius = 0;  ///< in heights and widths of the field

  bool covers(double at_y, double at_x) const { return std::hypot(at_y - y, at_x - x) < radius; }
};

class Mesh : public Dataset {
 public:
  Mesh(const DataOptions& options, const SampleForm& form, std::int64_t first, std::int64_t count)
      : options_(options), form_(form), first_(first), count_(count) {}

  std::int64_t samples() const override { return count_; }

  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    const Draws draws(options_.seed, first_ + sample, kSample), noise(options_.seed, first_ + sample, kNoise);
    std::array<Disc, kDiscs> discs;
    for (std::uint32_t i = 0; i < kDiscs; ++i)
      discs[i] = {draws.uniform(3 * i), draws.uniform(3 * i + 1), draws.uniform(3 * i + 2, 0.1, 0.25)};
    const auto covered = [&](std::int64_t y, std::int64_t height, std::int64_t x, std::int64_t width) {
      const double at_y = (static_cast<double>(y) + 0.5) / static_cast<double>(height);
      const double at_x = (static_cast<double>(x) + 0.5) / static_cast<double>(width);
      for (const Disc& disc : discs) {
        if (disc.covers(at_y, at_x)) return true;
      }
      return false;
    };
    const std::int64_t height = form_.input[1], width = form_.input[2];
    for (std::size_t i = 0; i < input.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double sign = at / (height * width) % 2 == 0 ? 1 : -1;  // of the channel
      const double signal = covered(at / width % height, height, at % width, width) ? 1 : -1;
      input[i] =
          static_cast<float>(sign * signal + options_.noise * noise.normal(static_cast<std::uint32_t>(i)));
    }
    const std::int64_t rows = form_.targets[form_.targets.size() - 2], columns = form_.targets.back();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      targets[i] = covered(at / columns % rows, rows, at % columns, columns) ? 1 : 0;
    }
  }

 private:
  DataOptions options_;
  SampleForm form_;
  std::int64_t first_, count_;
};

}  // namespace

std::unique_ptr<Dataset> generated_mesh(const DataOptions& options, const SampleForm& form,
                                        std::int64_t first, std::int64_t count) {
  return std::make_unique<Mesh>(options, form, first, count);
}

}  // namespace stepcast
