#include "strategies/plan/pipeline_schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "core/expects.hpp"

namespace stepcast {
namespace {

/// The k-th action of its kind: groups of as many micro-batches as there are stages, chunk after chunk.
PipelineAction action(Work pass, int k, int stages, int chunks) {
  const int group = k / (stages * chunks), within = k % (stages * chunks);
  const int chunk = within / stages;
  return {pass, group * stages + within % stages, pass == Work::forward ? chunk : chunks - 1 - chunk};
}

/// DualPipe: see pipeline_schedule. `inner` counts the stages between this one and the nearer end.
std::vector<PipelineAction> dual_pipe(int stage, int stages, int micro_batches) {
  const int half = stages / 2, inner = std::min(stage, stages - 1 - stage), outer = half - inner - 1;
  const int swapped = stage >= half ? 1 : 0;
  int forwards[] = {0, 0}, backwards[] = {0, 0};
  std::size_t next = 0;
  std::vector<PipelineAction> made, pending;
  const auto forward = [&](int direction, bool together = false) {
    const int chunk = direction ^ swapped;
    made.push_back({Work::forward, forwards[chunk]++, chunk, false, false, together});
  };
  const auto backward = [&](int direction, bool split = false) {
    const int chunk = direction ^ swapped;
    made.push_back({Work::backward, backwards[chunk]++, chunk, false, !split});
    if (split) pending.push_back({Work::backward, made.back().micro_batch, chunk, true});
  };
  const auto weights = [&] { made.push_back(pending.at(next++)); };
  for (int i = 0; i < 2 * outer; ++i) forward(0);
  for (int i = 0; i <= inner; ++i) forward(0), forward(1);
  for (int i = 0; i < outer; ++i) backward(1, true), weights(), forward(1);
  for (int i = 0; i < micro_batches / 2 - stages + inner + 1; ++i) {
    forward(0, i > 0 || outer > 0);
    backward(1);
    forward(1, true), backward(0);
  }
  for (int i = 0; i < outer; ++i) backward(1), forward(1, true), backward(0);
  for (int i = 0; i <= inner; ++i) backward(1, 2 * i > inner), backward(0, 2 * i + 1 > inner);
  for (int i = 0; i < outer; ++i) weights(), backward(0, true);
  for (int i = 0; i <= inner; ++i) weights();
  return made;
}

}  // namespace

std::vector<PipelineAction> pipeline_schedule(PipelineOrder order, int stage, int stages, int micro_batches,
                                              int chunks) {
  expects(0 <= stage && stage < stages, "a stage of the pipeline");
  expects(order != PipelineOrder::interleaved || micro_batches % stages == 0,
          "groups of as many micro-batches as there are stages");
  if (order == PipelineOrder::dual_pipe) return dual_pipe(stage, stages, micro_batches);
  const int all = micro_batches * chunks, left = stages - stage;
  int ahead = all;  // forward actions before the first backward action
  if (order == PipelineOrder::naive) ahead = 1;
  const bool split = order == PipelineOrder::zero_bubble;
  if (order == PipelineOrder::one_forward_one_backward || split) ahead = std::min(all, left);
  if (order == PipelineOrder::interleaved) ahead = std::min(all, 2 * (left - 1) + (chunks - 1) * stages + 1);
  std::vector<PipelineAction> made;
  for (int i = 0; i < ahead; ++i) made.push_back(action(Work::forward, i, stages, chunks));
  for (int i = 0; i < all; ++i) {
    made.push_back(action(Work::backward, i, stages, chunks));
    if (split && i >= stage) made.push_back({Work::backward, i - stage, 0, true});
    if (ahead + i < all) made.push_back(action(Work::forward, ahead + i, stages, chunks));
  }
  for (int i = std::max(0, all - stage); split && i < all; ++i) made.push_back({Work::backward, i, 0, true});
  return made;
}

std::vector<int> most_in_flight(const std::vector<PipelineAction>& actions, int chunks) {
  std::vector<int> held(chunks), most = held;
  const auto sum = [](const std::vector<int>& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0);
  };
  const bool split = std::ranges::any_of(actions, &PipelineAction::weights);
  for (const PipelineAction& one : actions) {
    expects(0 <= one.chunk && one.chunk < chunks, "actions of the stage's chunks");
    if (split && one.pass == Work::backward && !one.weights && !one.whole) continue;
    held[one.chunk] += one.pass == Work::forward ? 1 : -1;
    if (sum(held) > sum(most)) most = held;
  }
  return most;
}

}  // namespace stepcast
