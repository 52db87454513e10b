#include <catch2/catch.hpp>
#include <cmath>

#include "forecast/forecast.hpp"
#include "forecast/simulate_point.hpp"
#include "sim/simulation.hpp"
#include "tests/sim/child.hpp"

using namespace stepcast;

// Counts of a simulation's operations, which are equal on all machines. So a test can limit their growth with
// the number of workers; times would be too noisy. The cases are the benchmark's own (bench/cases.yaml).

namespace {

struct Counts {
  double events = 0;  ///< of the clock
  double flows = 0;
  double routes = 0;  ///< computed before the run
  double clocks = 0;  ///< of workers, moved on
  double seconds = 0;

  double all() const { return events + flows + routes + clocks; }
};

Counts counts_of(const std::string& name, int workers) {
  const auto numbers = numbers_from_child(5, [&] {
    const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/bench/cases.yaml#bench-" + name;
    const Scenario scenario =
        read_scenario(file, {parse_assignment("sweep={workers: [" + std::to_string(workers) + "]}")});
    Library library;
    const Experiment experiment = build_experiment(
        scenario.document, values_of(scenario, scenario.points.at(0).values, {}, {}), library);
    const SimulationResult result = simulate(simulation_of(experiment));
    return std::vector<double>{static_cast<double>(result.events), static_cast<double>(result.flows),
                               static_cast<double>(result.routes), static_cast<double>(result.clock_moves),
                               result.seconds};
  });
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

/// From each size to the next.
void check_growth(const std::string& name, const std::vector<int>& workers, double exponent) {
  std::vector<Counts> counts;
  for (const int size : workers) counts.push_back(counts_of(name, size));
  for (std::size_t i = 1; i < workers.size(); ++i) {
    CAPTURE(name, workers[i], counts[i].events, counts[i].flows, counts[i].routes, counts[i].clocks);
    CHECK(counts[i].seconds > 0);
    CHECK(counts[i].all() <= counts[i - 1].all() * std::pow(1.0 * workers[i] / workers[i - 1], exponent));
  }
}

}  // namespace

TEST_CASE("work of a data-parallel step grows at most as the workers to the power of 1.1", "[commands]") {
  check_growth("s", {64, 256, 1024, 4096, 16384}, 1.1);
}

TEST_CASE("work of hierarchical all-reduces grows at most as the workers to the power of 1.1", "[commands]") {
  check_growth("r", {64, 256, 1024, 4096, 16384}, 1.1);
}

TEST_CASE("a message of a parameter server costs a few events, whatever the number of workers",
          "[commands]") {
  for (const int workers : {64, 128, 256, 512}) {
    const Counts counts = counts_of("p", workers);
    CAPTURE(workers, counts.events);
    CHECK(counts.flows == 2.0 * workers * 16 * 20);  // to 16 shards and back, 20 times
    CHECK(counts.events <= 5 * counts.flows);
  }
}
