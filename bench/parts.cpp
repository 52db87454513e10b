#include <benchmark/benchmark.h>

#include "core/random.hpp"
#include "sim/engine/engine.hpp"
#include "sim/network/bottleneck_sharing.hpp"
#include "sim/network/schedule_link_load.hpp"
#include "strategies/collectives/schedule.hpp"

// Benchmarks of the parts of a simulation. SimGrid allows one engine per process, so the cases share one.

namespace stepcast {
namespace {

constexpr int kLinks = 1024;

Engine& engine() {
  static Engine one(std::vector<BytesPerSecond>(kLinks, {1e9}));
  return one;
}

/// Random numbers from Philox, each with its own key.
void random_numbers(benchmark::State& state) {
  std::uint32_t item = 0;
  for (auto _ : state) benchmark::DoNotOptimize(normal({1, Purpose::jitter, 0, 0, ++item}));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(random_numbers);

/// Events of different dates in the event queue.
void events(benchmark::State& state) {
  const auto count = state.range(0);
  std::uint32_t item = 0;
  for (auto _ : state) {
    const double now = engine().now();
    for (std::int64_t i = 0; i < count; ++i)
      engine().at(now + uniform({2, Purpose::jitter, 0, 0, ++item}), [] {});
    engine().run();
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(events)->Arg(1000)->Arg(100000);

/// Flows that share links, with BottleneckSharing.
void shared_flows(benchmark::State& state) {
  const int count = state.range(0);
  BottleneckSharing links(engine(), kLinks, [](int) { return BytesPerSecond{1e9}; });
  for (auto _ : state) {
    for (int i = 0; i < count; ++i) links.start_flow({i % 512, 512 + i % 16}, {1e6}, [] {});
    engine().run();
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(shared_flows)->Arg(1000)->Arg(16000)->Unit(benchmark::kMillisecond);

/// Flows over six links each, such as those of a fat tree and of nodes with several devices.
void flows_over_six_links(benchmark::State& state) {
  const int count = state.range(0);
  BottleneckSharing links(engine(), kLinks, [](int) { return BytesPerSecond{1e9}; });
  for (auto _ : state) {
    for (int i = 0; i < count; ++i)
      links.start_flow({i % 256, 256 + i % 256, 512 + i % 64, 576 + i % 48, 640 + i % 64, 704 + i % 16},
                       {1e6}, [] {});
    engine().run();
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(flows_over_six_links)->Arg(1000)->Arg(16000)->Unit(benchmark::kMillisecond);

/// Flows that share links, with SimGrid's max-min sharing.
void max_min_flows(benchmark::State& state) {
  const int count = state.range(0);
  for (auto _ : state) {
    for (int i = 0; i < count; ++i) engine().start_flow(std::vector{i % 512, 512 + i % 16}, {1e6}, [] {});
    engine().run();
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(max_min_flows)->Arg(1000)->Unit(benchmark::kMillisecond);

void ring_schedule(benchmark::State& state) {
  const int ranks = state.range(0);
  for (auto _ : state) benchmark::DoNotOptimize(ring_all_reduce({ranks, 4}));
  state.SetItemsProcessed(state.iterations() * ranks);
}
BENCHMARK(ring_schedule)->Arg(1024)->Arg(131072);

void halving_doubling_schedule(benchmark::State& state) {
  const int ranks = state.range(0);
  for (auto _ : state) benchmark::DoNotOptimize(halving_doubling_all_reduce({ranks, 4}));
  state.SetItemsProcessed(state.iterations() * ranks);
}
BENCHMARK(halving_doubling_schedule)->Arg(1024)->Arg(131072)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepcast
