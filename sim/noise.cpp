#include "sim/noise.hpp"

#include <cmath>

#include "core/random.hpp"

namespace stepcast {

Draw draw(const Noise& noise, std::uint64_t seed, std::uint32_t worker, std::uint32_t step,
          std::size_t samples) {
  Draw drawn;
  const RandomKey key{seed, Purpose::jitter, worker, step, 0};
  if (noise.jitter == Noise::Jitter::trace && samples > 0)
    drawn.sample = static_cast<int>(uniform_index(key, samples));
  if (noise.jitter == Noise::Jitter::lognormal) {
    drawn.factor = std::exp(noise.sigma * normal(key) - noise.sigma * noise.sigma / 2);
  }
  if (noise.straggler_share > 0 &&
      uniform({seed, Purpose::straggler, worker, 0, 0}) < noise.straggler_share) {
    drawn.factor *= noise.straggler_factor;
  }
  return drawn;
}

}  // namespace stepcast
