#include "strategies/plan/pipeline_schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

namespace stepcast {
namespace {

/// The k-th turn of its kind: groups of as many micro-batches as there are stages, chunk after chunk.
Turn turn(Work pass, int k, int stages, int chunks) {
  const int group = k / (stages * chunks), within = k % (stages * chunks);
  const int chunk = within / stages;
  return {pass, group * stages + within % stages, pass == Work::forward ? chunk : chunks - 1 - chunk};
}

}  // namespace

std::vector<Turn> turns(PipelineOrder order, int stage, int stages, int micro_batches, int chunks) {
  const int all = micro_batches * chunks, left = stages - stage;
  int ahead = all;  // forward turns before the first backward turn
  if (order == PipelineOrder::naive) ahead = 1;
  if (order == PipelineOrder::one_forward_one_backward) ahead = std::min(all, left);
  if (order == PipelineOrder::interleaved) ahead = std::min(all, 2 * (left - 1) + (chunks - 1) * stages + 1);
  std::vector<Turn> made;
  for (int i = 0; i < ahead; ++i) made.push_back(turn(Work::forward, i, stages, chunks));
  for (int i = 0; i < all; ++i) {
    made.push_back(turn(Work::backward, i, stages, chunks));
    if (ahead + i < all) made.push_back(turn(Work::forward, ahead + i, stages, chunks));
  }
  return made;
}

std::vector<int> most_in_flight(const std::vector<Turn>& turns, int chunks) {
  std::vector<int> held(static_cast<std::size_t>(chunks)), most = held;
  const auto sum = [](const std::vector<int>& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0);
  };
  for (const Turn& one : turns) {
    held[static_cast<std::size_t>(one.chunk)] += one.pass == Work::forward ? 1 : -1;
    if (sum(held) > sum(most)) most = held;
  }
  return most;
}

}  // namespace stepcast
