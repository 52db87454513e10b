#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "forecast/forecast.hpp"
#include "forecast/resource_limits.hpp"
#include "forecast/simulate_point.hpp"
#include "sim/simulation.hpp"
#include "tests/sim/child.hpp"

// Takes the place of the library's new and delete, in the program of these tests alone. What was asked for is
// kept before what is handed out.

namespace {

constexpr std::size_t kPlain = alignof(std::max_align_t);

std::atomic<long long> held{0}, most{0};

void* hand_out(std::size_t bytes, std::size_t line) {
  auto* block = static_cast<std::byte*>(std::aligned_alloc(line, (bytes + 2 * line - 1) / line * line));
  if (block == nullptr) throw std::bad_alloc();
  std::byte* memory = block + line;
  new (memory - sizeof(long long)) long long(static_cast<long long>(bytes));
  const long long now = held += static_cast<long long>(bytes);
  for (long long before = most; before < now && !most.compare_exchange_weak(before, now);) {
  }
  return memory;
}

void unmap(void* memory, std::size_t line) {
  if (memory == nullptr) return;
  auto* handed = static_cast<std::byte*>(memory);
  held -= *reinterpret_cast<long long*>(handed - sizeof(long long));
  std::free(handed - line);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return hand_out(bytes, kPlain);
}
void* operator new(std::size_t bytes, std::align_val_t line) {
  return hand_out(bytes, static_cast<std::size_t>(line));
}
void operator delete(void* memory) noexcept {
  unmap(memory, kPlain);
}
void operator delete(void* memory, std::size_t) noexcept {
  unmap(memory, kPlain);
}
void operator delete(void* memory, std::align_val_t line) noexcept {
  unmap(memory, static_cast<std::size_t>(line));
}
void operator delete(void* memory, std::size_t, std::align_val_t line) noexcept {
  unmap(memory, static_cast<std::size_t>(line));
}

namespace stepcast {

double counted_bytes() {
  return static_cast<double>(held);
}
double peak_bytes() {
  return static_cast<double>(most);
}
void forget_peak() {
  most = held.load();
}

}  // namespace stepcast

using namespace stepcast;

// Bytes that the program allocates, which are equal on all machines. What a process takes besides (its
// libraries) is measured (docs/explanation/performance.md).

namespace {

struct Taken {
  double counted = 0, estimated = 0;
};

Taken memory_of(int workers, int shards, int steps) {
  const auto numbers = numbers_from_child(2, [&] {
    const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/bench/cases.yaml#bench-p";
    const Scenario scenario =
        read_scenario(file, {parse_assignment("sweep={workers: [" + std::to_string(workers) + "]}"),
                             parse_assignment("strategy.shards=" + std::to_string(shards)),
                             parse_assignment("simulation.steps=" + std::to_string(steps))});
    Library library;
    const Experiment experiment = build_experiment(
        scenario.document, values_of(scenario, scenario.points.at(0).values, {}, {}), library);
    const double before = counted_bytes();
    forget_peak();
    const SimulationResult result = simulate(simulation_of(experiment));
    return std::vector<double>{peak_bytes() - before, simulated_memory(experiment).value};
  });
  return {numbers[0], numbers[1]};
}

}  // namespace

TEST_CASE("memory that is said before a run with servers is enough, and at most twice what it takes",
          "[commands]") {
  struct Size {
    int workers, shards, steps;
  };
  // Sizes at which messages take more than tables of the platform do.
  for (const auto& [workers, shards, steps] :
       {Size{64, 16, 20}, Size{64, 64, 5}, Size{256, 16, 20}, Size{256, 64, 5}, Size{1024, 16, 3}}) {
    const Taken memory = memory_of(workers, shards, steps);
    CAPTURE(workers, shards, steps);
    CHECK(memory.estimated >= memory.counted);
    CHECK(memory.estimated <= 2 * memory.counted);
  }
  const Taken small = memory_of(64, 1, 20);
  CHECK(small.estimated >= small.counted);
}
