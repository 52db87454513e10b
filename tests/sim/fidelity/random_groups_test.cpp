#include <catch2/catch.hpp>

#include "tests/sim/groups_run.hpp"

namespace stepcast::random_groups_test {

// Compares the chosen fidelity with every message while several communicators work at the same time:
// staggered rings that share NICs and cables, all workers in several orders, and data x tensor x pipeline
// groups.

namespace {

/// Compares the chosen fidelity with every message over cases [from, to): within 1 %.
void compare(std::uint32_t from, std::uint32_t to) {
  std::vector<Worst> fidelities(kFidelityTexts.size() + 1);
  for (std::uint32_t number = from; number < to; ++number) {
    const RandomGroups g = random_groups(number);
    const RandomCase& c = g.cluster;
    const ChildResult picked = groups_run(g, Fidelity::automatic, Folding::automatic, 0);
    const double exact = groups_run(g, Fidelity::message, Folding::automatic, 0).seconds;
    CAPTURE(number, kFidelityTexts.at(picked.fidelity), ordinal(g.kind), g.workers, g.communicators, g.ways,
            g.stages, g.micro_batches, g.dealt, ordinal(g.gradient), ordinal(g.other), ordinal(g.inside),
            g.crossing, g.streams);
    CAPTURE(ordinal(c.fabric), c.devices, c.nics, c.taper, c.nodes, c.slow_nics, c.slow_share, c.placement,
            ordinal(c.local), ordinal(c.network), c.scale, c.backward);
    CHECK(picked.seconds == Approx(exact).epsilon(0.01));
    fidelities[picked.fidelity].take(picked.seconds, exact, number);
  }
  for (std::size_t fidelity = 0; fidelity < kFidelityTexts.size(); ++fidelity)
    WARN(fmt::format("picked \"{}\": {}", kFidelityTexts[fidelity], fidelities[fidelity].text()));
}

}  // namespace

TEST_CASE("several communicators at once are within 1 % of every message: random cases 0 to 49", "[sim]") {
  compare(0, 50);
}

TEST_CASE("several communicators at once are within 1 % of every message: random cases 50 to 99", "[sim]") {
  compare(50, 100);
}

// Three communicators on a dragonfly whose messages wait for each other: sizes that differ by a millionth
// give steps that differ by 2 %, by SimGrid's sharing and by the own one. Only their means can be compared.
TEST_CASE("a step that a millionth of a size changes by 2 % is the same on average", "[sim]") {
  const RandomGroups g = random_groups(435);
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

// Compares the chosen folding with a program for each worker, while several communicators work at the same
// time, with and without jitter. The reference simulates every message with SimGrid's sharing.

namespace {

constexpr double kTolerance = 0.01;

bool in_one_group(const RandomGroups& g) {
  return g.kind == RandomGroups::rings || g.kind == RandomGroups::orders;
}

/// Compares folded with unfolded runs of workers that are in one group of each communicator, with jitter.
/// Such workers are always folded. Both runs have the same fidelity.
void compare_one_group(std::uint32_t from, std::uint32_t to) {
  Worst folded;
  for (std::uint32_t number = from; number < to; ++number) {
    const RandomGroups g = random_groups(number);
    if (!in_one_group(g)) continue;
    const ChildResult one = groups_run(g, Fidelity::automatic, Folding::automatic, 0.1);
    const double each = groups_run(g, Fidelity::automatic, Folding::never, 0.1).seconds;
    CAPTURE(number, ordinal(g.kind), g.workers, g.communicators);
    CHECK(one.folded);
    CHECK(one.seconds == Approx(each).epsilon(kTolerance));
    folded.take(one.seconds, each, number);
  }
  WARN(fmt::format("folded against unfolded: {}", folded.text()));
}

/// Compares folded with unfolded runs of workers that are in several groups.
/// @return the number of cases that were folded
int compare_groups(const std::vector<RandomGroups>& cases, double sigma) {
  Worst worst;
  int folded = 0;
  for (const RandomGroups& g : cases) {
    const std::uint32_t number = g.cluster.number - 1'000'000;
    const ChildResult one = groups_run(g, Fidelity::automatic, Folding::automatic, sigma);
    const double each = groups_run(g, Fidelity::message, Folding::never, sigma).seconds;
    CAPTURE(number, ordinal(g.kind), g.workers, g.ways, g.stages, g.micro_batches, one.folded, sigma);
    CHECK(one.seconds == Approx(each).epsilon(kTolerance));
    worst.take(one.seconds, each, number);
    folded += one.folded ? 1 : 0;
  }
  WARN(fmt::format("jitter {}: {}, {} folded", sigma, worst.text(), folded));
  return folded;
}

/// Those of the cases [from, to) that have tensor groups, pipelines or both.
std::vector<RandomGroups> several_groups(std::uint32_t from, std::uint32_t to) {
  std::vector<RandomGroups> cases;
  for (std::uint32_t number = from; number < to; ++number) {
    if (!in_one_group(random_groups(number))) cases.push_back(random_groups(number));
  }
  return cases;
}

std::vector<RandomGroups> spatial(std::uint32_t from, std::uint32_t to) {
  std::vector<RandomGroups> cases;
  for (std::uint32_t number = from; number < to; ++number) cases.push_back(random_spatial(number));
  return cases;
}

}  // namespace

TEST_CASE("communicators of one group folded are within 1 % of unfolded: random cases 0 to 124", "[sim]") {
  compare_one_group(0, 125);
}

TEST_CASE("communicators of one group folded are within 1 % of unfolded: random cases 125 to 249", "[sim]") {
  compare_one_group(125, 250);
}

TEST_CASE("communicators of one group folded are within 1 % of unfolded: random cases 250 to 374", "[sim]") {
  compare_one_group(250, 375);
}

TEST_CASE("communicators of one group folded are within 1 % of unfolded: random cases 375 to 499", "[sim]") {
  compare_one_group(375, 500);
}

TEST_CASE("the rule against unfolded, 1 %: tensor groups and pipelines, cases 0 to 199", "[sim]") {
  CHECK(compare_groups(several_groups(0, 200), 0) > 20);  // proven symmetric
}

TEST_CASE("the rule against unfolded, jittered, 1 %: tensor groups and pipelines, cases 0 to 199", "[sim]") {
  CHECK(compare_groups(several_groups(0, 200), 0.1) == 0);
}

TEST_CASE("the rule against unfolded, 1 %: partitioned samples, cases 0 to 59", "[sim]") {
  CHECK(compare_groups(spatial(0, 60), 0) > 10);
}

TEST_CASE("the rule against unfolded, jittered, 1 %: partitioned samples, cases 0 to 59", "[sim]") {
  CHECK(compare_groups(spatial(0, 60), 0.1) == 0);
}

}  // namespace stepcast::random_groups_test
