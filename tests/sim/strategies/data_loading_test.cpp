#include <catch2/catch.hpp>

#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::data_loading_test {

namespace {

/// Eight nodes that share a storage of 2 GB/s, 1 ms away; a node reads at most 0.5 GB/s.
Platform with_storage() {
  Platform platform = switch_platform(8);
  platform.storage.kind = Storage::Kind::shared;
  platform.storage.bandwidth = {2e9};
  platform.storage.per_node = {0.5e9};
  platform.storage.latency = {1e-3};
  return platform;
}

/// Seconds of a step of workers that load `bytes` each.
/// @param slowdown  factor on compute while input loads
double step_seconds(int workers, double bytes, int prefetch, bool fold, double slowdown = 1) {
  return number_from_child([=] {
    Run run(with_storage(), workers, three_layers({1e9}));
    run.workload.input = {bytes};
    run.options.prefetch = prefetch;
    run.options.steps = 4;
    run.options.overlap = false;
    run.communication.all_reduce.algorithm = Algorithm::ring;
    run.load_data = true;
    run.load_slowdown = slowdown;
    run.simulation.fold = fold ? Folding::always : Folding::never;
    return run.result().steps.at(2).seconds;
  });
}

constexpr double kLoad = 1e-3 + 0.5e-6;  // the storage, and the NIC's half of 1 us
double ring(int p) {
  return 2 * (p - 1) * (1e-6 + 24e6 / p / 1e9);
}
const auto exactly = [](double value) { return Approx(value).epsilon(1e-6).margin(0); };

}  // namespace

TEST_CASE("a load that is waited for takes the narrowest of node and storage", "[sim]") {
  const double fixed = kCompute + kUpdate;
  CHECK(step_seconds(1, 100e6, 0, true) == exactly(fixed + kLoad + 100e6 / 0.5e9));
  CHECK(step_seconds(8, 100e6, 0, true) == exactly(fixed + ring(8) + kLoad + 8 * 100e6 / 2e9));
  CHECK(step_seconds(8, 100e6, 0, false) == exactly(fixed + ring(8) + kLoad + 8 * 100e6 / 2e9));
}

TEST_CASE("a load that is shorter than the step hides behind it", "[sim]") {
  CHECK(step_seconds(8, 10e6, 1, true) == exactly(kCompute + kUpdate + ring(8)));
}

TEST_CASE("a load that is longer than the step sets its pace", "[sim]") {
  CHECK(step_seconds(8, 200e6, 1, true) == exactly(kLoad + 8 * 200e6 / 2e9));
}

TEST_CASE("compute is slower while input loads beside it", "[sim]") {
  const double load = kLoad + 8 * 10e6 / 2e9, slowdown = 1.25;
  REQUIRE(load < kCompute);
  const double lost = load * (1 - 1 / slowdown);
  for (const bool fold : {true, false})
    CHECK(step_seconds(8, 10e6, 1, fold, slowdown) == exactly(kCompute + kUpdate + ring(8) + lost));
}

TEST_CASE("a load that is waited for slows no compute", "[sim]") {
  CHECK(step_seconds(8, 10e6, 0, true, 1.25) == exactly(step_seconds(8, 10e6, 0, true)));
}

TEST_CASE("compute that is slower beside loads hides behind a longer load", "[sim]") {
  CHECK(step_seconds(8, 200e6, 1, true, 1.25) == exactly(kLoad + 8 * 200e6 / 2e9));
}

}  // namespace stepcast::data_loading_test
