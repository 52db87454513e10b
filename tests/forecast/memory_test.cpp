#include <catch2/catch.hpp>

#include "forecast/forecast.hpp"
#include "forecast/resource_limits.hpp"
#include "forecast/simulate_point.hpp"
#include "sim/simulation.hpp"
#include "tests/forecast/counted_memory.hpp"
#include "tests/sim/child.hpp"

using namespace stepcast;

// Bytes that the program allocates, which are equal on all machines. What a process takes besides (its
// libraries) is measured (docs/explanation/performance.md).

namespace {

struct Taken {
  double counted = 0, estimated = 0;
};

Taken memory_of(int workers, int shards, int steps) {
  const auto numbers = numbers_from_child(2, [&] {
    const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/bench/cases/p.yaml";
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
