#include "sim/network/max_min_sharing.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <utility>

#include "core/random.hpp"
#include "sim/patterns/sim_network.hpp"
#include "strategies/collectives/schedule.hpp"
#include "tests/first_endpoints.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/random_case.hpp"

namespace stepcast::end_queue_test {

namespace {

std::size_t random_below(std::uint32_t number, std::uint32_t what, std::size_t below) {
  return uniform_index({13, Purpose::data, number, what, 200}, below);
}

}  // namespace

TEST_CASE("ends leave by date, and those of equal date in the order in which they were added", "[sim]") {
  EndQueue queue;
  std::map<std::pair<double, std::uint64_t>, EndQueue::Index> reference;
  std::uint64_t last = 0;
  double now = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const double date = now + static_cast<double>(random_below(i / 3, 0, 4));  // few dates, often repeated
    const auto flow = static_cast<EndQueue::Index>(random_below(i, 1, EndQueue::kMaxFlow));
    const std::uint64_t order = queue.add(date, flow);
    REQUIRE(order > last);
    last = order;
    REQUIRE(reference.emplace(std::pair(date, order), flow).second);
    const std::size_t leave = random_below(i, 2, i / 4000 % 2 == 0 ? 2 : 4);  // grows, then empties
    for (std::size_t k = 0; k < leave && !reference.empty(); ++k) {
      const auto first = reference.begin();
      REQUIRE(!queue.empty());
      REQUIRE(queue.date() == first->first.first);
      REQUIRE(queue.order() == first->first.second);
      REQUIRE(EndQueue::flow_of(queue.order()) == first->second);
      now = queue.date();
      queue.pop();
      reference.erase(first);
    }
  }
  for (; !reference.empty(); reference.erase(reference.begin()), queue.pop())
    REQUIRE(queue.order() == reference.begin()->first.second);
  CHECK(queue.empty());
}

}  // namespace stepcast::end_queue_test

namespace stepcast::max_min_sharing_test {

namespace {

struct Sent {
  std::vector<int> links;
  double bytes, start;
};

/// The date when each flow ends [s], with MaxMinSharing or with SimGrid's sharing.
std::vector<double> ends(const std::vector<BytesPerSecond>& links, const std::vector<Sent>& flows, bool own) {
  return numbers_from_child(flows.size(), [&] {
    Engine engine(links);
    MaxMinSharing shared(engine, links.size(), [&](int link) { return links[link]; });
    std::vector<double> done(flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      engine.at(flows[i].start, [&, i] {
        const auto end = [&, i] { done[i] = engine.now(); };
        own ? shared.start_flow(flows[i].links, {flows[i].bytes}, end)
            : engine.start_flow(flows[i].links, {flows[i].bytes}, end);
      });
    }
    engine.run();
    return done;
  });
}

/// Both solvers work with doubles. SimGrid is asked for 1e-12 of a link's bandwidth and 1e-12 s.
void check_equal(const std::vector<BytesPerSecond>& links, const std::vector<Sent>& flows,
                 std::uint32_t number) {
  const auto own = ends(links, flows, true), simgrid = ends(links, flows, false);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    CAPTURE(number, i);
    CHECK(own[i] == Approx(simgrid[i]).epsilon(1e-9).margin(0));
  }
}

/// Ends of collectives that start together on a drawn cluster. All messages are whole numbers of 1/1024
/// byte, to which SimGrid rounds them.
std::vector<double> collective_ends(const RandomCase& c, const std::vector<Schedule>& schedules,
                                    LinkSharing sharing) {
  return numbers_from_child(schedules.size(), [&] {
    const Platform platform = platform_of(c);
    const Topology topology(platform);
    LinkBandwidths bandwidths(platform);
    slow_nics(c, bandwidths);
    const Placement placement{&platform, &topology, endpoints_of(c)};
    NetworkPatterns placed(bandwidths);
    std::vector<PatternId> patterns;
    for (const Schedule& schedule : schedules)
      patterns.push_back(placed.add(std::make_shared<const Schedule>(schedule), placement));
    LinkOptions options{Fidelity::message, sharing};
    options.patterns_only = options.one_at_a_time = true;
    SimNetwork network(placed, options);
    std::vector<double> ends(patterns.size());
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      network.start_pattern(patterns[i], {3 << 20}, 1, [&, i] { ends[i] = network.engine().now(); });
    }
    network.engine().run();
    return ends;
  });
}

}  // namespace

TEST_CASE("a flow takes what one held up elsewhere leaves", "[sim]") {
  // Both flows share link 0 of 100 B/s; the second also crosses link 1 of 20 B/s. They get 80 and 20 B/s,
  // then one gets 100 B/s.
  const auto done = ends({{100}, {20}}, {{{0}, 800, 0}, {{0, 1}, 100, 0}}, true);
  CHECK(done[1] == Approx(5).epsilon(1e-12));
  CHECK(done[0] == Approx(5 + 4).epsilon(1e-12));
}

TEST_CASE("a link that a flow crosses twice carries it twice", "[sim]") {
  CHECK(ends({{100}}, {{{0, 0}, 100, 0}}, true)[0] == Approx(ends({{100}}, {{{0, 0}, 100, 0}}, false)[0]));
}

TEST_CASE("random flows over shared links end when SimGrid's do", "[sim]") {
  for (std::uint32_t number = 0; number < 20; ++number) {
    const auto draw = [number](std::uint32_t what, std::uint32_t item) {
      return uniform({13, Purpose::data, number, what, item});
    };
    std::vector<BytesPerSecond> links;
    for (std::uint32_t i = 0; i < 12; ++i) links.push_back({1e6 * (i % 3 == 0 ? 1 : 1 + 3 * draw(0, i))});
    std::vector<Sent> flows;
    for (std::uint32_t i = 0; i < 100; ++i) {
      const int a = static_cast<int>(12 * draw(1, i)), b = 12 * draw(2, i);
      const double start = i % 2 == 0 ? 0.5 * (i / 20) : 5 * draw(4, i);  // some together, some apart
      flows.push_back(
          {a == b ? std::vector{a} : std::vector{a, b}, std::round(1e6 * (1 + i % 4 * draw(3, i))), start});
    }
    check_equal(links, flows, number);
  }
}

TEST_CASE("random messages on random clusters end when SimGrid's do", "[sim]") {
  for (std::uint32_t number = 0; number < 30; ++number) {
    const auto draw = [number](std::uint32_t what, std::uint32_t item) {
      return uniform({14, Purpose::data, number, what, item});
    };
    const RandomCase c = random_case(number);
    const Platform platform = platform_of(c);
    const Topology topology(platform);
    LinkBandwidths bandwidths(platform);
    slow_nics(c, bandwidths);
    const auto endpoints = endpoints_of(c);
    const auto endpoint = [&](double share) { return endpoints[share * endpoints.size()]; };
    std::vector<Sent> flows;
    for (std::uint32_t i = 0; i < 150; ++i) {
      Sent sent{{},
                std::round(1e6 * (i % 3 == 0 ? 2 : 10 * draw(2, i))),
                i % 2 == 0 ? 1e-4 * (i / 10) : 1e-3 * draw(3, i)};
      topology.route(endpoint(draw(0, i)), endpoint(draw(1, i)), sent.links);
      if (!sent.links.empty()) flows.push_back(std::move(sent));
    }
    check_equal(bandwidths.all(), flows, number);
  }
}

TEST_CASE("a link that only follows a narrower one can be left out", "[sim]") {
  // Every route of the ring leaves a node and enters the next, over links that no other route uses: each
  // keeps one. Two rings in opposite directions share no pair of endpoints but do share these links.
  const RandomCase c = [] {
    RandomCase one = random_case(0);
    one.fabric = RandomCase::one_switch;
    one.devices = one.nics = 1;
    return one;
  }();
  const Platform platform = platform_of(c);
  const Topology topology(platform);
  const LinkBandwidths bandwidths(platform);
  const Schedule ring = ring_all_reduce({8, 1});
  const Placement forwards{&platform, &topology, test::first_endpoints(8)};
  Placement skipping = forwards;
  skipping.endpoints = {0, 3, 6, 1, 4, 7, 2, 5};
  MessagePattern one(ring, forwards), other(ring, skipping), alone(ring, forwards);
  keep_narrowest_links(std::array{&alone}, bandwidths);
  for (const MessagePattern::Route& route : alone.edges[0].routes) CHECK(route.count == 1);
  keep_narrowest_links(std::array{&one, &other}, bandwidths);
  for (const MessagePattern::Route& route : one.edges[0].routes) CHECK(route.count == 2);

  leave_out_unshared_links(std::array{&alone}, bandwidths);
  for (const MessagePattern::Route& route : alone.edges[0].routes) {
    CHECK(route.count == 0);
    CHECK(route.max_rate == platform.network.port().bandwidth.value);
  }
  leave_out_unshared_links(std::array{&one, &other}, bandwidths);
  for (const MessagePattern::Route& route : one.edges[0].routes) CHECK(route.count == 2);
}

TEST_CASE("a flow that shares no link ends after its bytes at its rate", "[sim]") {
  Engine engine({});
  MaxMinSharing shared(engine, 1, [](int) { return BytesPerSecond{100}; });
  std::vector<double> ends;
  struct Ended {
    Engine& engine;
    std::vector<double>& ends;
  } ended{engine, ends};
  const auto call = [](void* owner, std::uint64_t number) {
    const auto* to = static_cast<Ended*>(owner);
    CHECK(to->ends.size() == number);
    to->ends.push_back(to->engine.now());
  };
  const std::array<int, 1> links{0};
  shared.start_alone(1, {60}, 20, {call, &ended, 2});
  shared.start_alone(0.5, {10}, 10, {call, &ended, 1});
  shared.start_flow(links, {50}, FlowEnd{call, &ended, 0}, 200);
  engine.run();
  CHECK(ends == std::vector<double>{0.5, 1.5, 4});
  CHECK(shared.flows() == 3);
}

namespace {

/// Compares the ends of collectives with both solvers.
/// @param schedules  of this number of ranks
void check_collectives(std::uint32_t number, const std::function<std::vector<Schedule>(int)>& schedules) {
  RandomCase c = random_case(number);
  c.nodes = std::min(c.nodes, 8);
  const auto all = schedules(c.workers());
  const auto own = collective_ends(c, all, LinkSharing::max_min),
             simgrid = collective_ends(c, all, LinkSharing::simgrid);
  for (std::size_t i = 0; i < own.size(); ++i) {
    CAPTURE(number, i, ordinal(c.fabric), c.devices, c.nics, c.nodes, c.slow_nics);
    CHECK(own[i] == Approx(simgrid[i]).epsilon(1e-9).margin(0));
  }
}

}  // namespace

TEST_CASE("collectives that start together on random clusters end when SimGrid's do", "[sim]") {
  for (std::uint32_t number = 0; number < 30; ++number) {
    check_collectives(number, [](int ranks) -> std::vector<Schedule> {
      return {ring_all_reduce({ranks, 1}), halving_doubling_all_reduce({ranks, 1}),
              recursive_doubling_all_reduce({ranks, 1})};
    });
  }
}

TEST_CASE("rings of several channels share the links between their ranks as in SimGrid", "[sim]") {
  for (std::uint32_t number = 0; number < 30; ++number) {
    for (const int channels : {2, 4}) {
      check_collectives(number, [channels](int ranks) -> std::vector<Schedule> {
        return {ring_all_reduce({ranks, 1}, channels)};
      });
    }
  }
}

}  // namespace stepcast::max_min_sharing_test
