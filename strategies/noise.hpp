#pragma once

#include <cstdint>

#include "core/random.hpp"
#include "strategies/conditions.hpp"
#include "strategies/workload.hpp"

namespace stepcast {

/// What one worker draws for one step.
struct Draw {
  int sample = -1;         ///< index of the measured step that it replays; -1: the medians
  double factor = 1;       ///< on all that it does in the step, communication apart
  double layer_sigma = 0;  ///< of the logarithm of a factor for every layer and pass; 0: none
  RandomKey key;           ///< of those factors

  double layer_factor(int layer, Work pass) const;  ///< of mean 1
};

/// The same for a worker and step whoever asks, in any order.
Draw draw(const Noise& noise, std::uint64_t seed, std::uint32_t worker, std::uint32_t step,
          std::size_t samples);

}  // namespace stepcast
