#include <catch2/catch.hpp>

#include "tests/sim/small_cluster.hpp"

namespace stepcast::host_time_test {

// Each TEST_CASE runs simulations of one worker, which start no flows.

namespace {

const auto exactly = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };

/// A host that takes `share` of the device's times; the update's share differs.
Workload issued(double share, double update) {
  Workload workload = three_layers({0});
  for (const LayerSeconds& layer : workload.median)
    workload.host.push_back({share * layer.forward, share * layer.backward, update * layer.update});
  return workload;
}

StepSeconds step_of(const Workload& workload, bool reads_gradients = false) {
  Run run(switch_platform(1), 1, workload);
  run.options.reads_gradients = reads_gradients;
  return run.result().steps.at(0);
}

}  // namespace

TEST_CASE("a host that takes no time leaves every bit of a step", "[sim]") {
  const StepSeconds with = step_of(issued(0, 0)), without = step_of(three_layers({0}));
  CHECK(with.seconds == without.seconds);
  CHECK(with.compute == without.compute);
  CHECK(with.host == 0);
}

TEST_CASE("a step takes what the slower of host and device takes, and waits for the host", "[sim]") {
  CHECK(step_of(issued(0.5, 0.5)).seconds == exactly(kCompute + kUpdate));
  const StepSeconds late = step_of(issued(2, 2));
  CHECK(late.seconds == exactly(2 * (kCompute + kUpdate)));
  CHECK(late.compute == exactly(kCompute + kUpdate));
  CHECK(late.host == exactly(kCompute + kUpdate));
  CHECK(late.exposed == Approx(0).margin(1e-12));
}

TEST_CASE("a host that is ahead issues the update early, unless it reads the gradients first", "[sim]") {
  const Workload workload = issued(0.5, 20);  // 60 ms to issue an update of 3 ms
  CHECK(step_of(workload).seconds == exactly(kCompute + kUpdate));
  CHECK(step_of(workload, true).seconds == exactly(kCompute + 20 * kUpdate));
}

TEST_CASE("more time of the host makes no step faster", "[sim]") {
  double before = 0;
  for (const double share : {0.0, 0.3, 0.9, 1.0, 1.1, 5.0}) {
    const double seconds = step_of(issued(share, 1)).seconds;
    CHECK(seconds >= before);
    before = seconds;
  }
}

TEST_CASE("noise acts on the device, not on the host", "[sim]") {
  Run run(switch_platform(1), 1, issued(3, 3));
  run.simulation.noise.jitter = Noise::Jitter::layers;
  run.simulation.noise.sigma = 0.1;
  const StepSeconds step = run.result().steps.at(0);
  CHECK(step.seconds == exactly(3 * (kCompute + kUpdate)));
  CHECK(step.compute + step.host == exactly(step.seconds));
}

}  // namespace stepcast::host_time_test
