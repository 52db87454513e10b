#include <catch2/catch.hpp>

#include "tests/sim/groups_run.hpp"

using namespace stepcast;

// The chosen folding against a program for each worker, with several communicators at the same time, with and
// without jitter. The reference simulates every message with SimGrid's sharing.

namespace {

constexpr double kTolerance = 0.01;

bool in_one_group(const DrawnGroups& g) {
  return g.kind == DrawnGroups::rings || g.kind == DrawnGroups::orders;
}

/// Workers in one group of each communicator, with jitter: always folded. The same form for both.
void compare_one_group(std::uint32_t from, std::uint32_t to) {
  Worst folded;
  for (std::uint32_t number = from; number < to; ++number) {
    const DrawnGroups g = drawn_groups(number);
    if (!in_one_group(g)) continue;
    const ChildResult one = groups_run(g, Fidelity::automatic, Folding::automatic, 0.1);
    const double each = groups_run(g, Fidelity::automatic, Folding::never, 0.1).seconds;
    CAPTURE(number, static_cast<int>(g.kind), g.workers, g.communicators);
    CHECK(one.folded);
    CHECK(one.seconds == Approx(each).epsilon(kTolerance));
    folded.take(one.seconds, each, number);
  }
  WARN(fmt::format("folded against unfolded: {}", folded.text()));
}

/// Workers in several groups; returns how many cases were folded.
int compare_groups(const std::vector<DrawnGroups>& cases, double sigma) {
  Worst worst;
  int folded = 0;
  for (const DrawnGroups& g : cases) {
    const std::uint32_t number = g.cluster.number - 1'000'000;
    const ChildResult one = groups_run(g, Fidelity::automatic, Folding::automatic, sigma);
    const double each = groups_run(g, Fidelity::message, Folding::never, sigma).seconds;
    CAPTURE(number, static_cast<int>(g.kind), g.workers, g.ways, g.stages, g.micro_batches, one.folded,
            sigma);
    CHECK(one.seconds == Approx(each).epsilon(kTolerance));
    worst.take(one.seconds, each, number);
    folded += one.folded ? 1 : 0;
  }
  WARN(fmt::format("jitter {}: {}, {} folded", sigma, worst.text(), folded));
  return folded;
}

/// Tensor groups, pipelines and both of the cases [from, to).
std::vector<DrawnGroups> several_groups(std::uint32_t from, std::uint32_t to) {
  std::vector<DrawnGroups> cases;
  for (std::uint32_t number = from; number < to; ++number) {
    if (!in_one_group(drawn_groups(number))) cases.push_back(drawn_groups(number));
  }
  return cases;
}

std::vector<DrawnGroups> spatial(std::uint32_t from, std::uint32_t to) {
  std::vector<DrawnGroups> cases;
  for (std::uint32_t number = from; number < to; ++number) cases.push_back(drawn_spatial(number));
  return cases;
}

}  // namespace

TEST_CASE("communicators of one group folded are within 1 % of unfolded: drawn cases 0 to 124", "[sim]") {
  compare_one_group(0, 125);
}

TEST_CASE("communicators of one group folded are within 1 % of unfolded: drawn cases 125 to 249", "[sim]") {
  compare_one_group(125, 250);
}

TEST_CASE("communicators of one group folded are within 1 % of unfolded: drawn cases 250 to 374", "[sim]") {
  compare_one_group(250, 375);
}

TEST_CASE("communicators of one group folded are within 1 % of unfolded: drawn cases 375 to 499", "[sim]") {
  compare_one_group(375, 500);
}

TEST_CASE("the rule against unfolded, 1 %: tensor groups and pipelines, cases 0 to 199", "[sim]") {
  CHECK(compare_groups(several_groups(0, 200), 0) > 20);  // proven alike
}

TEST_CASE("the rule against unfolded, jittered, 1 %: tensor groups and pipelines, cases 0 to 199", "[sim]") {
  CHECK(compare_groups(several_groups(0, 200), 0.1) == 0);
}

TEST_CASE("the rule against unfolded, 1 %: cut samples, cases 0 to 59", "[sim]") {
  CHECK(compare_groups(spatial(0, 60), 0) > 10);
}

TEST_CASE("the rule against unfolded, jittered, 1 %: cut samples, cases 0 to 59", "[sim]") {
  CHECK(compare_groups(spatial(0, 60), 0.1) == 0);
}
