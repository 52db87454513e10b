#include <catch2/catch.hpp>

#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::folding_test {

namespace {

/// Step times of 16 jittered workers, and the number of events that the clock handled.
SimulationResult jittered(bool fold) {
  Run run(switch_platform(16), 16, three_layers({1}));
  run.options.steps = 4;
  run.simulation.fold = fold ? Folding::always : Folding::never;
  run.simulation.noise.jitter = Noise::Jitter::lognormal;
  run.simulation.noise.sigma = 0.2;
  run.compute_slowdown = 1.3;
  run.simulation.link_sharing = LinkSharing::simgrid;  // whose events do not count as events of the programs
  return run.result();
}

// These are the results of both, computed once with fold off (g++ 12). A test that runs one simulation
// compares with them.
constexpr double kLastStep = 0.275255565;

}  // namespace

TEST_CASE("a program for each worker gives the jittered step", "[sim]") {
  CHECK(jittered(false).steps.at(3).seconds == Approx(kLastStep).epsilon(1e-8));
}

TEST_CASE("one program for all workers gives the same jittered step", "[sim]") {
  const auto result = jittered(true);
  CHECK(result.steps.at(3).seconds == Approx(kLastStep).epsilon(1e-8));
  CHECK(result.events < 150);
}

TEST_CASE("jitter of every layer is the same folded and unfolded, and averages out over a long step",
          "[sim]") {
  const auto step = [](bool fold, double sigma) {
    return number_from_child([=] {
      Run run(switch_platform(16), 16, three_layers({1}));
      run.simulation.fold = fold ? Folding::always : Folding::never;
      run.communication.all_reduce.algorithm = Algorithm::ring;
      run.simulation.noise.jitter = Noise::Jitter::layers;
      run.simulation.noise.sigma = sigma;
      return run.result().steps.at(0).seconds;
    });
  };
  CHECK(step(true, 0.2) == Approx(step(false, 0.2)).epsilon(1e-9));
  const double last = 30 * (1e-6 + 4e6 / 16 / 1e9);  // the all-reduce that nothing hides
  CHECK(step(true, 0) == Approx(kCompute + kUpdate + last).epsilon(1e-9));
  CHECK(step(true, 0.2) > step(true, 0));
}

}  // namespace stepcast::folding_test
