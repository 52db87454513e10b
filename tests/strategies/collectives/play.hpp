#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Executes a schedule on the buffers of its ranks, which have equal lengths, round by round. A round sends
/// the values from before the round.
template <class Value>
void execute_on_values(const Schedule& schedule, const std::vector<std::span<Value>>& buffers) {
  struct Moved {
    std::span<Value> target;
    std::vector<Value> values;
  };
  const std::int64_t elements = buffers.front().size();
  const auto part_of = [&](int rank, const Slice& slice) {
    return buffers[rank].subspan(slice.begin, slice.size());
  };
  for (const Phase& phase : schedule.phases) {
    for (int round = 0; round < phase.rounds; ++round) {
      std::vector<Moved> moved;
      for (const Edge& edge : *phase.edges) {
        const int k = round - edge.delay;
        if (k < 0 || k >= phase.active) continue;
        const Slice slice = slice_of(schedule, phase, edge, k, elements);
        const std::span<Value> source = part_of(edge.source, slice);
        moved.push_back({part_of(edge.target, slice), {source.begin(), source.end()}});
      }
      for (const Moved& one : moved) {
        const bool adds = phase.on_receive == OnReceive::reduce;
        std::ranges::transform(one.target, one.values, one.target.begin(),
                               [adds](Value there, Value sent) { return adds ? there + sent : sent; });
      }
    }
  }
}

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
