#pragma once

#include <vector>

#include "strategies/collectives/schedule.hpp"

namespace stepcast {

using Buffers = std::vector<std::vector<double>>;  // one a rank

/// Plays a schedule on plain vectors, round by round; what is sent in a round was there before it.
inline void play(const Schedule& schedule, Buffers& buffers) {
  const auto elements = static_cast<std::int64_t>(buffers.front().size());
  for (const Phase& phase : schedule.phases) {
    for (int round = 0; round < phase.rounds; ++round) {
      const Buffers before = buffers;
      for (const Edge& edge : *phase.edges) {
        const int k = round - edge.delay;
        if (k < 0 || k >= phase.active) continue;
        const Slice slice = slice_of(schedule, phase, edge, k, elements);
        for (auto i = static_cast<std::size_t>(slice.begin); i < static_cast<std::size_t>(slice.end); ++i) {
          const double value = before[static_cast<std::size_t>(edge.source)][i];
          double& target = buffers[static_cast<std::size_t>(edge.target)][i];
          target = phase.arrival == Arrival::add ? target + value : value;
        }
      }
    }
  }
}

/// Rank r starts with r + 1 + element / 1000 in every element.
inline Buffers numbered(int ranks, std::int64_t elements) {
  Buffers buffers(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t i = 0; i < elements; ++i) {
      buffers[static_cast<std::size_t>(rank)].push_back(rank + 1 + 1000.0 * static_cast<double>(i));
    }
  }
  return buffers;
}

}  // namespace stepcast
