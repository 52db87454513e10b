#include "strategies/model_parallel/layer_segments.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

namespace {

Trace three_layers() {
  Trace trace;
  for (const char* name : {"a", "b", "c"})
    trace.layers.push_back({name, {{8e-3}, {}}, {{6e-3}, {}}, {{4e-3}, {}}, {{1e-3}, {}}});
  return trace;
}

std::vector<LayerCost> one_kernel_each() {
  LayerCost cost;
  cost.forward.kernels = cost.backward_data.kernels = cost.backward_weights.kernels = 1;
  return {cost, cost, cost};
}

/// The number of times that each segment runs in a pass.
std::vector<int> uses(const std::vector<OverlapSegment>& overlaps, std::size_t pieces) {
  std::vector<int> count(pieces);
  for (const OverlapSegment& segment : overlaps) {
    for (const LayerRange& range : {segment.overlapped, segment.after}) {
      for (int piece = range.first; piece < range.last; ++piece) ++count[piece];
    }
  }
  return count;
}

std::vector<LayerCalls> halos_in_the_middle() {
  std::vector<LayerCalls> calls(3);
  calls[1].forward_halo = {CollectiveId{0}, "halo"};
  calls[1].backward_halo = {CollectiveId{1}, "halo"};
  calls[1].forward_border = 0.25;
  calls[1].backward_border = 0.5;
  calls[1].sides = 2;
  calls[2].after_backward.push_back({CollectiveId{2}, "exchange"});
  return calls;
}

}  // namespace

TEST_CASE("pieces of a layer take its time, and the launches of its border on top", "[strategies]") {
  Device device;
  device.launch_overhead = {1e-3};
  const auto seconds = [&](bool overlap) {
    const Workload workload =
        segmented_workload(three_layers(), one_kernel_each(), device, halos_in_the_middle(), overlap);
    LayerSeconds sum;
    for (int i = kSegmentsPerLayer; i < 2 * kSegmentsPerLayer; ++i) {
      sum.forward += workload.median[i].forward;
      sum.backward += workload.median[i].backward;
    }
    return sum;
  };
  CHECK(seconds(false).forward == Approx(8e-3));
  CHECK(seconds(false).backward == Approx(10e-3));
  CHECK(seconds(true).forward == Approx(8e-3 + 2e-3));
  CHECK(seconds(true).backward == Approx(10e-3 + 2e-3));
}

TEST_CASE("the interior runs during the halo exchange and, in the backward pass, backward-weights do too",
          "[strategies]") {
  const auto calls = halos_in_the_middle();
  const Workload workload = segmented_workload(three_layers(), one_kernel_each(), {}, calls, true);
  const PassSegments passes = make_passes(calls, {0, 3}, std::vector<std::vector<CollectiveId>>(3), true);
  const auto sum = [&](LayerRange range, double LayerSeconds::*pass) {
    double total = 0;
    for (int i = range.first; i < range.last; ++i) total += workload.median[i].*pass;
    return total;
  };
  REQUIRE(passes.forward.size() == 2);
  CHECK(sum(passes.forward[1].overlapped, &LayerSeconds::forward) == Approx(0.75 * 8e-3));
  CHECK(sum(passes.forward[1].after, &LayerSeconds::forward) == Approx(0.25 * 8e-3 + 8e-3));
  REQUIRE(passes.backward.size() == 3);
  CHECK(sum(passes.backward[0].after, &LayerSeconds::backward) == Approx(6e-3));  // data of c
  CHECK(sum(passes.backward[1].overlapped, &LayerSeconds::backward) ==
        Approx(4e-3));  // weights of c during its sum
  CHECK(sum(passes.backward[2].overlapped, &LayerSeconds::backward) == Approx(4e-3 + 0.5 * 6e-3));
}

TEST_CASE("every piece runs once a pass, whatever is exchanged and overlapped", "[strategies]") {
  for (const bool overlap : {false, true}) {
    const CollectiveId of_first{7}, of_last{8}, also_of_last{9};
    const std::vector<std::vector<CollectiveId>> sums{{of_first}, {}, {of_last, also_of_last}};
    const PassSegments passes = make_passes(halos_in_the_middle(), {0, 3}, sums, overlap);
    CHECK(uses(passes.forward, 9) == std::vector<int>(9, 1));
    CHECK(uses(passes.backward, 9) == std::vector<int>(9, 1));
    std::vector<CollectiveId> started;
    for (const OverlapSegment& segment : passes.backward)
      started.insert(started.end(), segment.sums.begin(), segment.sums.end());
    CHECK(started == std::vector{of_last, also_of_last, of_first});
  }
}
