#include <catch2/catch.hpp>

#include "tests/sim/groups_run.hpp"

using namespace stepcast;

// The chosen fidelity against every message with several communicators at the same time: rings
// that share NICs and cables, staggered; all workers in several orders; data x tensor x pipeline groups.

namespace {

/// Compares the chosen fidelity with every message over cases [from, to): within 1 %.
void compare(std::uint32_t from, std::uint32_t to) {
  std::vector<Worst> forms(kFidelityTexts.size() + 1);
  for (std::uint32_t number = from; number < to; ++number) {
    const DrawnGroups g = drawn_groups(number);
    const DrawnCase& c = g.cluster;
    const ChildResult picked = groups_run(g, Fidelity::automatic, Folding::automatic, 0);
    const double exact = groups_run(g, Fidelity::message, Folding::automatic, 0).seconds;
    CAPTURE(number, kFidelityTexts.at(picked.form), static_cast<int>(g.kind), g.workers, g.communicators,
            g.ways, g.stages, g.micro_batches, g.dealt, static_cast<int>(g.gradient),
            static_cast<int>(g.other), static_cast<int>(g.inside), g.crossing, g.streams);
    CAPTURE(static_cast<int>(c.fabric), c.devices, c.nics, c.taper, c.nodes, c.slow_nics, c.slow_share,
            c.placement, static_cast<int>(c.local), static_cast<int>(c.network), c.scale, c.backward);
    CHECK(picked.seconds == Approx(exact).epsilon(0.01));
    forms[picked.form].take(picked.seconds, exact, number);
  }
  for (std::size_t form = 0; form < kFidelityTexts.size(); ++form)
    WARN(fmt::format("picked \"{}\": {}", kFidelityTexts[form], forms[form].text()));
}

}  // namespace

TEST_CASE("several communicators at once are within 1 % of every message: drawn cases 0 to 49", "[sim]") {
  compare(0, 50);
}

TEST_CASE("several communicators at once are within 1 % of every message: drawn cases 50 to 99", "[sim]") {
  compare(50, 100);
}

// Three communicators on a dragonfly whose messages wait for each other: sizes that differ by a millionth
// give steps that differ by 2 %, by SimGrid's sharing and by the own one. Only their means can be compared.
TEST_CASE("a step that a millionth of a size changes by 2 % is the same on average", "[sim]") {
  const DrawnGroups g = drawn_groups(435);
  double own = 0, simgrid = 0, least = 1e300, most = 0;
  for (const double more : {0.0, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4, -1e-5, 1e-3}) {
    own += groups_run(g, Fidelity::automatic, Folding::automatic, 0, 1 + more).seconds;
    const double exact = groups_run(g, Fidelity::message, Folding::automatic, 0, 1 + more).seconds;
    simgrid += exact;
    least = std::min(least, exact);
    most = std::max(most, exact);
  }
  CHECK(most > 1.02 * least);
  CHECK(own == Approx(simgrid).epsilon(0.01));
}
