#include <catch2/catch.hpp>

#include "sim/patterns/pattern.hpp"
#include "sim/patterns/point_to_point_schedules.hpp"
#include "strategies/collectives/schedule.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/random_case.hpp"
#include "tests/sim/simulated_alone.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::time_bounds_test {
namespace {

struct Cluster {
  Platform platform = switch_platform(16);
  Topology topology{platform};
  LinkBandwidths bandwidths{platform};

  /// Slows down the links out of the last node.
  void slow_last(double share) {
    std::vector<int> route;
    topology.route(15, 0, route);
    for (const int link : route) bandwidths.multiply(link, share);
  }
  Pattern pattern(Schedule schedule) const {
    NetworkPatterns network(bandwidths);
    const int ranks = schedule.ranks;
    auto shared = std::make_shared<const Schedule>(std::move(schedule));
    return network.pattern(network.add(shared, {&platform, &topology, test::first_endpoints(ranks)}));
  }
  double played(const Schedule& schedule, Bytes buffer) const {
    return number_from_child([&] {
      NetworkPatterns network(bandwidths);
      const PatternId added = network.add(std::make_shared<const Schedule>(schedule),
                                          {&platform, &topology, test::first_endpoints(schedule.ranks)});
      return simulated_alone(network, LinkSharing::simgrid, added, buffer);
    });
  }
};

}  // namespace

TEST_CASE("rounds proceed in lock step if all ranks and links are equal, and not otherwise", "[sim]") {
  Cluster cluster;
  CHECK(in_lock_step(cluster.pattern(ring_all_reduce({16, 1})), cluster.bandwidths));
  CHECK(in_lock_step(cluster.pattern(halving_doubling_all_reduce({16, 1})), cluster.bandwidths));
  CHECK_FALSE(in_lock_step(cluster.pattern(halving_doubling_all_reduce({12, 1})), cluster.bandwidths));
  CHECK_FALSE(in_lock_step(cluster.pattern(binomial_all_reduce({16, 1})), cluster.bandwidths));
  CHECK_FALSE(in_lock_step(cluster.pattern(double_tree_all_reduce({16, 1}, 4)), cluster.bandwidths));
  cluster.slow_last(0.5);
  CHECK_FALSE(in_lock_step(cluster.pattern(ring_all_reduce({16, 1})), cluster.bandwidths));
}

TEST_CASE("a ring through a slow NIC takes what its bound says", "[sim]") {
  Cluster cluster;
  cluster.slow_last(0.5);
  const Schedule ring = ring_all_reduce({16, 1});
  const double least = least_seconds(cluster.pattern(ring), {1e6});
  CHECK(least == Approx(30 * (1e-6 + 1e6 / 16 / 0.5e9)));
  CHECK(cluster.played(ring, {1e6}) == Approx(least).epsilon(1e-6));
}

TEST_CASE("no simulation of the messages is shorter than the bound", "[sim]") {
  Cluster cluster;
  cluster.slow_last(0.3);
  for (const Schedule& schedule :
       {ring_all_reduce({13, 1}), halving_doubling_all_reduce({16, 1}), halving_doubling_all_reduce({11, 1}),
        recursive_doubling_all_reduce({12, 1}), binomial_all_reduce({16, 1}),
        double_tree_all_reduce({16, 1}, 9), all_to_all({16, 1})}) {
    for (const double bytes : {1e3, 1e6}) {
      const double least = least_seconds(cluster.pattern(schedule), {bytes});
      CAPTURE(schedule.ranks, schedule.phases.size(), bytes, least);
      CHECK(least > 0);
      CHECK(cluster.played(schedule, {bytes}) >= least * (1 - 1e-6));
    }
  }
}

// Tests the lower bound that decides whether a cheap run is close: it must be below the time with every
// message, but not far below.

namespace {

struct Compared {
  double least, played;
};

/// All ranks of a random case in groups of `size`, on an otherwise idle network.
Compared compared(const RandomCase& c, const Schedule& of_group, Bytes buffer) {
  const auto numbers = numbers_from_child(2, [&] {
    const Platform platform = platform_of(c);
    const Topology topology(platform);
    LinkBandwidths bandwidths(platform);
    slow_nics(c, bandwidths);
    NetworkPatterns network(bandwidths);
    const auto shared = std::make_shared<const Schedule>(of_group);
    const int groups = c.workers() / of_group.ranks;
    const PatternId added = network.add(replicated(shared, groups), {&platform, &topology, endpoints_of(c)});
    return std::vector<double>{
        lower_bound_seconds(network.pattern(added), shape_of(network.pattern(added), bandwidths), buffer,
                            bandwidths),
        simulated_alone(network, LinkSharing::max_min, added, buffer)};
  });
  return {numbers[0], numbers[1]};
}

std::vector<Schedule> schedules(int ranks) {
  const Group group{ranks, 1};
  return {ring_all_reduce(group), halving_doubling_all_reduce(group), recursive_doubling_all_reduce(group),
          binomial_all_reduce(group), double_tree_all_reduce(group, 8)};
}

}  // namespace

TEST_CASE("no collective over all ranks is quicker than its bound: random cases 0 to 39", "[sim]") {
  for (std::uint32_t number = 0; number < 40; ++number) {
    const RandomCase c = random_case(number);
    for (const Schedule& schedule : schedules(c.workers())) {
      const Compared text = compared(c, schedule, {1e7 * c.scale});
      CAPTURE(number, text.least, text.played);
      CHECK(text.least > 0);
      CHECK(text.least <= text.played * (1 + 1e-9));
    }
  }
}

TEST_CASE("no collective of pairs is quicker than the bound of the quickest: random cases 0 to 39", "[sim]") {
  for (std::uint32_t number = 0; number < 40; ++number) {
    const RandomCase c = random_case(number);
    const Compared text = compared(c, ring_all_reduce({2, 1}), {1e7 * c.scale});
    CAPTURE(number, text.least, text.played);
    CHECK(text.least > 0);
    CHECK(text.least <= text.played * (1 + 1e-9));
  }
}

TEST_CASE("the bound is what a ring takes on one switch", "[sim]") {
  RandomCase c = random_case(0);
  c.fabric = RandomCase::one_switch;
  c.devices = c.nics = 1;
  c.slow_nics = 0;
  const Compared text = compared(c, ring_all_reduce({c.workers(), 1}), {1e7});
  CHECK(text.least == Approx(text.played).epsilon(1e-9));
}

TEST_CASE("halving and doubling over nodes that share NICs needs what the busiest NIC does", "[sim]") {
  RandomCase c = random_case(0);
  c.fabric = RandomCase::fat_tree;
  c.taper = 1;
  c.devices = 4;
  c.nics = 2;
  c.nodes = 32;
  c.placement = 0;
  c.slow_nics = 0;
  const Compared text = compared(c, halving_doubling_all_reduce({128, 4}), {1e8});
  CHECK(text.least <= text.played * (1 + 1e-9));
  CHECK(text.least > 0.95 * text.played);
}
}  // namespace stepcast::time_bounds_test
