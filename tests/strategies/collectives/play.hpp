#pragma once

#include <vector>

#include "tests/strategies/collectives/execute_on_values.hpp"

namespace stepcast {

using Buffers = std::vector<std::vector<double>>;  // one a rank

inline void play(const Schedule& schedule, Buffers& buffers) {
  execute_on_values<double>(schedule, {buffers.begin(), buffers.end()});
}

/// Rank r starts with r + 1 + element / 1000 in every element.
inline Buffers numbered(int ranks, std::int64_t elements) {
  Buffers buffers(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t i = 0; i < elements; ++i) {
      buffers[rank].push_back(rank + 1 + 1000.0 * i);
    }
  }
  return buffers;
}

}  // namespace stepcast
