#include "strategies/noise.hpp"

#include <cmath>

namespace stepcast {
namespace {

/// Lognormal of mean 1.
double lognormal(double sigma, const RandomKey& key) {
  return std::exp(sigma * normal(key) - sigma * sigma / 2);
}

/// A worker replays steps of its own rank: one core may be slower than another for minutes. Workers of unlike
/// ranks replay the same moment.
int sample_of(const MeasuredSteps& measured, RandomKey key, std::uint32_t worker) {
  const auto ranks = static_cast<std::uint32_t>(measured.ranks);
  const std::size_t each = measured.count / ranks;
  key.worker = worker / ranks;
  return static_cast<int>(worker % ranks * each + uniform_index(key, each));
}

}  // namespace

double Draw::layer_factor(int layer, Work pass) const {
  RandomKey own = key;
  own.item = 1 + 3 * static_cast<std::uint32_t>(layer) + static_cast<std::uint32_t>(pass);
  return lognormal(layer_sigma, own);
}

Draw draw(const Noise& noise, std::uint64_t seed, std::uint32_t worker, std::uint32_t step,
          const MeasuredSteps& measured) {
  Draw drawn;
  const RandomKey key{seed, Purpose::jitter, worker, step, 0};
  if (noise.jitter == Noise::Jitter::trace && measured.count > 0)
    drawn.sample = sample_of(measured, key, worker);
  if (noise.jitter == Noise::Jitter::lognormal) drawn.factor = lognormal(noise.sigma, key);
  if (noise.jitter == Noise::Jitter::layers) {
    drawn.layer_sigma = noise.sigma;
    drawn.key = key;
  }
  if (noise.straggler_share > 0 &&
      uniform({seed, Purpose::straggler, worker, 0, 0}) < noise.straggler_share) {
    drawn.factor *= noise.straggler_factor;
  }
  return drawn;
}

}  // namespace stepcast
