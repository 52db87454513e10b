#include <catch2/catch.hpp>

#include "forecast/forecast.hpp"
#include "forecast/simulate_point.hpp"
#include "sim/simulation.hpp"
#include "tests/sim/child.hpp"

using namespace stepcast;

// Case P of the benchmarks (bench/cases/p.yaml: 16 shards, 102 MB, every link shared), at sizes where
// SimGrid's own max-min sharing runs in a second or so.

namespace {

/// Seconds of a worker's step, messages sharing links by BottleneckSharing (automatic) or by SimGrid
/// (message).
double step_seconds(int workers, const char* form, const char* noise) {
  return number_from_child([&] {
    const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/bench/cases/p.yaml";
    const Scenario scenario = read_scenario(file, {});
    Library library;
    const Experiment experiment = build_experiment(
        scenario.document,
        {parse_assignment("platform.nodes=4200"), parse_assignment("workers=" + std::to_string(workers)),
         parse_assignment("simulation.steps=4"), parse_assignment(std::string("simulation.fidelity=") + form),
         parse_assignment(std::string("noise=") + noise), parse_assignment("simulation.sharing=simgrid")},
        library);
    const SimulationResult result = simulate(simulation_of(experiment));
    if (to_text(result.fidelity) != (std::string(form) == "message" ? "message" : "message, shared, roughly"))
      throw std::logic_error("simulated with fidelity " + to_text(result.fidelity));
    return result.steps.at(0).seconds;
  });
}

}  // namespace

TEST_CASE("case P shares links as SimGrid does, to 2 %", "[commands]") {
  for (const int workers : {64, 128}) {
    for (const char* noise : {"{jitter: none}", "{jitter: lognormal, sigma: 0.2}"}) {
      const double fair = step_seconds(workers, "automatic", noise);
      const double max_min = step_seconds(workers, "message", noise);
      CAPTURE(workers, noise, fair, max_min);
      CHECK(fair == Approx(max_min).epsilon(0.02));
    }
  }
}
