#include "sim/patterns/sampled_time.hpp"

#include <catch2/catch.hpp>

#include "tests/first_endpoints.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/random_case.hpp"
#include "tests/sim/simulated_alone.hpp"

namespace stepcast::sampled_time_test {

namespace {

/// One collective over all devices of a random case, sampled and with every message.
struct Compared {
  double sampled, messages, error, played, all;
};

Compared compared(const RandomCase& c, const Schedule& schedule, Bytes buffer) {
  const auto numbers = numbers_from_child(4, [&] {
    const Platform platform = platform_of(c);
    const Topology topology(platform);
    LinkBandwidths bandwidths(platform);
    slow_nics(c, bandwidths);
    NetworkPatterns network(bandwidths);
    const PatternId added =
        network.add(std::make_shared<const Schedule>(schedule), {&platform, &topology, endpoints_of(c)});
    const auto sampled = Sampling(bandwidths, LinkSharing::max_min).time(network.pattern(added), buffer, 1e9);
    return std::vector<double>{sampled->seconds, sampled->messages, sampled->error,
                               simulated_alone(network, LinkSharing::simgrid, added, buffer)};
  });
  return {numbers[0], numbers[1], numbers[2], numbers[3], message_count(schedule)};
}

RandomCase of_fabric(RandomCase::Fabric fabric) {
  RandomCase c = random_case(0);
  c.fabric = fabric;
  c.devices = 4;
  c.nics = 2;
  c.taper = 4;
  c.nodes = 32;
  c.placement = 0;
  c.slow_nics = 3;
  c.slow_share = 0.6;
  return c;
}

}  // namespace

TEST_CASE("few rounds tell how long many take: pipelines and rings over unequal networks", "[sim]") {
  for (const auto fabric : {RandomCase::one_switch, RandomCase::racks, RandomCase::torus}) {
    const RandomCase c = of_fabric(fabric);
    for (const double bytes : {1e8}) {
      const Compared tree = compared(c, double_tree_all_reduce({128, 4}, 200), {bytes});
      const Compared ring = compared(c, ring_all_reduce({128, 4}), {bytes});
      CAPTURE(ordinal(fabric), bytes, tree.error, ring.error);
      CHECK(tree.sampled == Approx(tree.played).epsilon(0.005));
      CHECK(ring.sampled == Approx(ring.played).epsilon(0.005));
      if (fabric == RandomCase::one_switch) CHECK(tree.messages < 0.5 * tree.all);
    }
  }
}

TEST_CASE("a schedule of few rounds is simulated completely", "[sim]") {
  const RandomCase c = of_fabric(RandomCase::racks);
  const Compared halving = compared(c, halving_doubling_all_reduce({128, 4}), {1e6});
  CHECK(halving.error == 0);
  CHECK(halving.messages == halving.all);
  CHECK(halving.sampled == Approx(halving.played).epsilon(1e-6));
}

TEST_CASE("nothing is sampled if samples exceed the allowed work, and the next sample is right", "[sim]") {
  const Platform platform = switch_platform(128);
  const Topology topology(platform);
  NetworkPatterns network{LinkBandwidths(platform)};
  const auto ring = std::make_shared<const Schedule>(ring_all_reduce({128, 1}));
  const PatternId added = network.add(ring, {&platform, &topology, test::first_endpoints(128)});
  const LinkBandwidths bandwidths(platform);
  CHECK_FALSE(Sampling(bandwidths, LinkSharing::max_min).time(network.pattern(added), {1e6}, 1000));
  const auto seconds = [&](Sampling& sampling) {
    return sampling.time(network.pattern(added), {1e6}, 1e6)->seconds;
  };
  Sampling fresh(bandwidths, LinkSharing::max_min);
  const double expected = seconds(fresh);
  for (const double work : {2e3, 4e3, 8e3, 1.6e4, 3.2e4}) {
    Sampling after_giving_up(bandwidths, LinkSharing::max_min);
    after_giving_up.time(network.pattern(added), {1e6}, work);
    CHECK(seconds(after_giving_up) == Approx(expected).epsilon(1e-12));
  }
}

}  // namespace stepcast::sampled_time_test
