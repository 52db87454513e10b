#include <catch2/catch.hpp>

#include "tests/sim/compared.hpp"
#include "tests/sim/groups_plan.hpp"

using namespace stepcast;

// The form that the rule picks against every message where several communicators are at work at once: rings
// that share NICs and cables, staggered; all workers in several orders; data x tensor x pipeline groups.

namespace {

Told run_of(const DrawnGroups& g, Form form, bool fold, double sigma) {
  return told_by_child([&] {
    const Platform platform = platform_of(g.cluster);
    Workload workload = three_layers({1});
    for (Bucket& bucket : workload.buckets) bucket.gradient.value *= g.cluster.scale;
    for (LayerSeconds& layer : workload.median) layer = {g.cluster.backward / 2, g.cluster.backward, 0};
    const Plan plan = GroupsPlan(g, platform, std::move(workload)).made();
    Simulation simulation;
    simulation.platform = &platform;
    simulation.plan = &plan;
    simulation.bandwidths = LinkBandwidths(platform);
    slow_nics(g.cluster, simulation.bandwidths);
    simulation.form = form;
    simulation.fold = fold;
    simulation.noise.jitter = sigma > 0 ? Noise::Jitter::lognormal : Noise::Jitter::none;
    simulation.noise.sigma = sigma;
    return simulate(simulation);
  });
}

/// Over cases [from, to): the form that the rule picks against every message, 1 %.
void compare(std::uint32_t from, std::uint32_t to) {
  std::vector<Worst> forms(kFormsTold.size() + 1);
  for (std::uint32_t number = from; number < to; ++number) {
    const DrawnGroups g = drawn_groups(number);
    const DrawnCase& c = g.cluster;
    const Told picked = run_of(g, Form::automatic, true, 0);
    const double exact = run_of(g, Form::message, true, 0).seconds;
    CAPTURE(number, kFormsTold.at(picked.form), static_cast<int>(g.kind), g.workers, g.communicators, g.ways,
            g.stages, g.micro_batches, g.dealt, static_cast<int>(g.gradient), static_cast<int>(g.other),
            static_cast<int>(g.inside), g.crossing, g.streams);
    CAPTURE(static_cast<int>(c.fabric), c.devices, c.nics, c.taper, c.nodes, c.slow_nics, c.slow_share,
            c.placement, static_cast<int>(c.local), static_cast<int>(c.network), c.scale, c.backward);
    CHECK(picked.seconds == Approx(exact).epsilon(0.01));
    forms[picked.form].take(picked.seconds, exact, number);
  }
  for (std::size_t form = 0; form < kFormsTold.size(); ++form)
    WARN(fmt::format("picked \"{}\": {}", kFormsTold[form], forms[form].text()));
}

}  // namespace

TEST_CASE("several communicators at once are within 1 % of every message: drawn cases 0 to 49", "[sim]") {
  compare(0, 50);
}

TEST_CASE("several communicators at once are within 1 % of every message: drawn cases 50 to 99", "[sim]") {
  compare(50, 100);
}
