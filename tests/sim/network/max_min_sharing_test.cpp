#include "sim/network/max_min_sharing.hpp"

#include <catch2/catch.hpp>

#include "core/random.hpp"
#include "tests/sim/child.hpp"

using namespace stepcast;

namespace {

struct Sent {
  std::vector<int> links;
  double bytes, start;
};

/// The date when each flow ends [s], with MaxMinSharing or with SimGrid's sharing.
std::vector<double> ends(const std::vector<BytesPerSecond>& links, const std::vector<Sent>& flows, bool own) {
  return numbers_from_child(flows.size(), [&] {
    Engine engine(links);
    MaxMinSharing shared(engine, static_cast<int>(links.size()),
                         [&](int link) { return links[static_cast<std::size_t>(link)]; });
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
      const int a = static_cast<int>(12 * draw(1, i)), b = static_cast<int>(12 * draw(2, i));
      const double start = i % 2 == 0 ? 0.5 * (i / 20) : 5 * draw(4, i);  // some together, some apart
      flows.push_back({a == b ? std::vector{a} : std::vector{a, b}, 1e6 * (1 + i % 4 * draw(3, i)), start});
    }
    const auto own = ends(links, flows, true), simgrid = ends(links, flows, false);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      CAPTURE(number, i);
      CHECK(own[i] == Approx(simgrid[i]).epsilon(1e-6));
    }
  }
}
