#pragma once

#include <cstdint>

#include "strategies/conditions.hpp"

namespace stepcast {

/// What one worker draws for one step.
struct Draw {
  int sample = -1;    ///< index of the measured step that it replays; -1: the medians
  double factor = 1;  ///< on all that it does in the step, communication apart
};

/// The same for a worker and step whoever asks, in any order.
Draw draw(const Noise& noise, std::uint64_t seed, std::uint32_t worker, std::uint32_t step,
          std::size_t samples);

}  // namespace stepcast
