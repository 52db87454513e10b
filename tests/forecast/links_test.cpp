#include <catch2/catch.hpp>

#include "forecast/forecast.hpp"
#include "forecast/simulate_point.hpp"
#include "sim/simulation.hpp"
#include "tests/scenarios/scenario_text.hpp"
#include "tests/sim/child.hpp"

namespace stepcast::links_test {
namespace {

constexpr double kSteps = 1000;

Experiment trained(const std::string& strategy, const std::string& links, const std::string& others = "") {
  return shipped_experiment(
      "resnet50-ethernet-cpu",
      {"workers=8", "noise={jitter: none}", "simulation.steps=1", "strategy=" + strategy,
       "faults={steps: 1000, " + others + "links: [" + links + "]}"});
}

constexpr const char* kRing = "{kind: synchronous, all_reduce: ring, overlap: false, bucket: 1 GB}";

/// Columns of the experiment; -1 for one that it does not have.
std::vector<double> columns(const Experiment& experiment, const std::vector<std::string>& names) {
  return numbers_from_child(names.size(), [&] {
    const Row row = simulate_point(experiment);
    std::vector<double> values;
    for (const std::string& name : names) values.push_back(row.number(name).value_or(-1));
    return values;
  });
}

}  // namespace

TEST_CASE("a ring over a NIC that keeps half of its bandwidth loses 2 (n - 1) chunks' time a step",
          "[forecast][faults]") {
  const auto got = columns(trained(kRing, "{links: node 3 NIC 0 up, share: 0.5, at: 0 s, lasts: 99999 h}"),
                           {"training_hours_with_faults", "step_seconds", "lost_to_links_seconds",
                            "link_failures", "lost_to_restart_seconds"});
  const double chunk = 4.0 * 25557032 / 8, rate = 2.94e9;  // bytes, bytes/s of platforms/ethernet-cpu.yaml
  const double longer = 2 * 7 * chunk / rate;              // each chunk takes twice as long
  CHECK(3600 * got[0] / kSteps == Approx(got[1] + longer).epsilon(1e-6));
  CHECK(got[2] == Approx(kSteps * longer).epsilon(1e-4));
  CHECK(got[3] == 1);
  CHECK(got[4] == 0);
}

TEST_CASE("the time lost to links is that of a run with as much background traffic", "[forecast][faults]") {
  const std::string link = "links: node 2 NIC 0 down, share: ";
  const auto faulty =
      columns(trained(kRing, "{" + link + "0.25, at: 0 s, lasts: 99999 h}"), {"training_hours_with_faults"});
  const Experiment busy = shipped_experiment(
      "resnet50-ethernet-cpu", {"workers=8", "noise={jitter: none}", "simulation.steps=1",
                                std::string("strategy=") + kRing, "background=[{" + link + "0.75}]"});
  CHECK(3600 * faulty[0] / kSteps == Approx(columns(busy, {"step_seconds"})[0]).epsilon(1e-9));
}

TEST_CASE("a synchronous training stops while a node is cut off; one with servers goes on without it",
          "[forecast][faults]") {
  const std::string cut = "{node: 3, at: 60 s, lasts: 30 s}";
  const auto stopped =
      columns(trained(kRing, cut, "restart: 5 s, "),
              {"lost_to_restart_seconds", "lost_to_rework_seconds", "lost_to_links_seconds"});
  CHECK(stopped == std::vector<double>{35, 60, 0});
  const Experiment servers = trained("{kind: parameter_server}", cut);
  CHECK(servers.faults->faults.response == FailureResponse::shrink);
  const auto shrunk = columns(servers, {"lost_to_restart_seconds", "lost_to_missing_workers_seconds"});
  CHECK(shrunk[0] == 0);
  CHECK(shrunk[1] == Approx(30.0 / servers.faults->faults.nodes));
}

TEST_CASE("a dead cable with a second way slows a training, or costs nothing", "[forecast][faults]") {
  Experiment around = trained(kRing, "{links: leaf 0 -> spine 0, at: 0 s, lasts: 99999 h}");
  CHECK(around.faults->faults.links.at(0).cut_off == 0);
  // All eight workers are in one rack, whose cables up they do not use.
  const auto unused =
      columns(around, {"lost_to_links_seconds", "training_hours_with_faults", "step_seconds"});
  CHECK(unused[0] == 0);
  CHECK(3600 * unused[1] == Approx(kSteps * unused[2]));
}

// Case P of the benchmarks (bench/cases.yaml: 16 shards, 102 MB, every link shared), at sizes where
// SimGrid's own max-min sharing runs in a second or so.

namespace {

/// Seconds of a worker's step, messages sharing links by BottleneckSharing (automatic) or by SimGrid
/// (message).
double step_seconds(int workers, const char* form, const char* noise) {
  return number_from_child([&] {
    const std::string file = std::string(STEPCAST_SOURCE_DIR) + "/bench/cases.yaml#bench-p";
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
}  // namespace stepcast::links_test
