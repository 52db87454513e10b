#include "strategies/noise.hpp"

#include <cmath>

namespace stepcast {
namespace {

/// Lognormal of mean 1.
double lognormal(double sigma, const RandomKey& key) {
  return std::exp(sigma * normal(key) - sigma * sigma / 2);
}

}  // namespace

double Draw::layer_factor(int layer, Work pass) const {
  RandomKey own = key;
  own.item = 1 + 3 * static_cast<std::uint32_t>(layer) + static_cast<std::uint32_t>(pass);
  return lognormal(layer_sigma, own);
}

Draw draw(const Noise& noise, std::uint64_t seed, std::uint32_t worker, std::uint32_t step,
          std::size_t samples) {
  Draw drawn;
  const RandomKey key{seed, Purpose::jitter, worker, step, 0};
  if (noise.jitter == Noise::Jitter::trace && samples > 0)
    drawn.sample = static_cast<int>(uniform_index(key, samples));
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
