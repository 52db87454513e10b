#include <catch2/catch.hpp>

#include "tests/sim/compared.hpp"
#include "tests/sim/random_case.hpp"

namespace stepcast::random_fidelity_test {

// Compares the chosen fidelity with every message, and folded with unfolded runs, over 240 random cases. The
// cases have one switch, tapered fat trees, racks, a torus or a dragonfly, NICs that are equal or partly
// slowed down, and every algorithm.

namespace {

ChildResult run_of(const RandomCase& c, Fidelity fidelity, bool fold, double sigma) {
  return simulated_in_child([&] {
    Run run(platform_of(c), c.workers(), three_layers({1}));
    run.endpoints = endpoints_of(c);
    slow_nics(c, run.simulation.bandwidths);
    for (Bucket& bucket : run.workload.buckets) bucket.gradient.value *= c.scale;
    for (LayerSeconds& layer : run.workload.median) layer = {0.001, c.backward, 0};
    run.options.overlap = c.overlap;
    run.communication.all_reduce.algorithm = c.algorithm;
    run.communication.all_reduce.local = c.local;
    run.communication.all_reduce.network = c.network;
    run.communication.streams = run.communication.in_flight = c.streams;
    run.simulation.fidelity = fidelity;
    if (fidelity == Fidelity::message) run.simulation.link_sharing = LinkSharing::simgrid;  // the oracle
    run.simulation.fold = fold ? Folding::always : Folding::never;
    run.simulation.noise.jitter = sigma > 0 ? Noise::Jitter::lognormal : Noise::Jitter::none;
    run.simulation.noise.sigma = sigma;
    return run.result();
  });
}

/// Compares over cases [from, to), within 1 %: the chosen fidelity with every message, and with jitter one
/// program for all workers with one for each.
void compare(std::uint32_t from, std::uint32_t to) {
  std::vector<Worst> fidelities(kFidelityTexts.size() + 1);
  Worst folded;
  for (std::uint32_t number = from; number < to; ++number) {
    const RandomCase c = random_case(number);
    const ChildResult picked = run_of(c, Fidelity::automatic, true, 0);
    const double exact = run_of(c, Fidelity::message, true, 0).seconds;
    CAPTURE(number, kFidelityTexts.at(picked.fidelity), ordinal(c.fabric), c.devices, c.nics, c.taper,
            c.nodes, c.streams, c.slow_nics, c.slow_share, c.placement, ordinal(c.algorithm),
            ordinal(c.local), ordinal(c.network), c.scale, c.backward, c.overlap);
    CHECK(picked.seconds == Approx(exact).epsilon(0.01));
    fidelities[picked.fidelity].take(picked.seconds, exact, number);
    const double one = run_of(c, Fidelity::automatic, true, 0.1).seconds;
    const double each = run_of(c, Fidelity::automatic, false, 0.1).seconds;
    CHECK(one == Approx(each).epsilon(0.01));
    folded.take(one, each, number);
  }
  for (std::size_t fidelity = 0; fidelity < kFidelityTexts.size(); ++fidelity)
    WARN(fmt::format("picked \"{}\": {}", kFidelityTexts[fidelity], fidelities[fidelity].text()));
  WARN(fmt::format("folded against unfolded: {}", folded.text()));
}

}  // namespace

TEST_CASE("the chosen fidelity is within 1 % of every message: random cases 0 to 59", "[sim]") {
  compare(0, 60);
}

TEST_CASE("the chosen fidelity is within 1 % of every message: random cases 60 to 119", "[sim]") {
  compare(60, 120);
}

TEST_CASE("the chosen fidelity is within 1 % of every message: random cases 120 to 179", "[sim]") {
  compare(120, 180);
}

TEST_CASE("the chosen fidelity is within 1 % of every message: random cases 180 to 239", "[sim]") {
  compare(180, 240);
}

}  // namespace stepcast::random_fidelity_test
