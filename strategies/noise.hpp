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

/// What workers may replay.
struct MeasuredSteps {
  std::size_t count = 0;
  int ranks = 1;  ///< that were measured at once: as many steps of each, one rank after the other
};

/// The same for a worker and step whoever asks, in any order.
Draw draw(const Noise& noise, std::uint64_t seed, std::uint32_t worker, std::uint32_t step,
          const MeasuredSteps& measured);

}  // namespace stepcast
