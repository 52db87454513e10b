#include <catch2/catch.hpp>

#include "sim/patterns/pattern.hpp"
#include "strategies/collectives/schedule.hpp"
#include "tests/sim/child.hpp"
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

}  // namespace stepcast::time_bounds_test
