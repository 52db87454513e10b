#include "sim/network/bottleneck_sharing.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "core/random.hpp"
#include "tests/sim/child.hpp"

namespace stepcast::bottleneck_sharing_test {

namespace {

struct Sent {
  std::vector<int> links;
  double bytes, start;
};

using Start = std::function<void(const std::vector<int>&, Bytes, Engine::Callback)>;

/// The date when each flow ends [s], with BottleneckSharing or with SimGrid's max-min sharing.
std::vector<double> ends(const std::vector<double>& bandwidths, const std::vector<Sent>& flows, bool fair) {
  return numbers_from_child(flows.size(), [&] {
    std::vector<BytesPerSecond> links;
    for (const double bandwidth : bandwidths) links.push_back({bandwidth});
    Engine engine(links);
    BottleneckSharing shared(engine, links.size(), [&](int link) { return links[link]; });
    std::vector<double> done(flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      engine.at(flows[i].start, [&, i] {
        const auto end = [&, i] { done[i] = engine.now(); };
        fair ? shared.start_flow(flows[i].links, {flows[i].bytes}, end)
             : engine.start_flow(flows[i].links, {flows[i].bytes}, end);
      });
    }
    engine.run();
    return done;
  });
}

}  // namespace

TEST_CASE("flows over one link share it evenly as they come and go", "[sim]") {
  // The link has 100 B/s. The first flow is alone for 1 s, both share the link for 2 s, then the second is
  // alone.
  const auto done = ends({100, 1000}, {{{0, 1}, 200, 0}, {{0}, 200, 1}}, true);
  CHECK(done[0] == Approx(3).epsilon(1e-12));
  CHECK(done[1] == Approx(4).epsilon(1e-12));
}

TEST_CASE("a link whose last flow was held up elsewhere serves the next flow at its own pace", "[sim]") {
  // The first flow crosses both links. Ten flows at once make the second link the narrower one; two of them
  // leave soon, so that it ends before the first link expected it to. Then the first link stands empty.
  std::vector<Sent> flows{{{0, 1}, 1000, 0}};
  for (int i = 0; i < 10; ++i) flows.push_back({{1}, i < 2 ? 45.0 : 5000.0, 1});
  flows.push_back({{0}, 100, 50});
  CHECK(ends({100, 1000}, flows, true).back() == Approx(51).epsilon(1e-12));
}

TEST_CASE("many flows of one bottleneck end when SimGrid's do", "[sim]") {
  std::vector<double> bandwidths{50e6};
  std::vector<Sent> flows;
  for (std::uint32_t i = 0; i < 40; ++i) {
    bandwidths.push_back(100e6);
    flows.push_back({{static_cast<int>(i) + 1, 0},
                     10e6 + 90e6 * uniform({1, Purpose::data, i, 0, 0}),
                     20 * uniform({1, Purpose::data, i, 1, 0})});
  }
  const auto fair = ends(bandwidths, flows, true), max_min = ends(bandwidths, flows, false);
  for (std::size_t i = 0; i < flows.size(); ++i) CHECK(fair[i] == Approx(max_min[i]).epsilon(1e-6));
}

TEST_CASE("workers that push to shards, and fetch, take as long as under max-min sharing, to 2 %", "[sim]") {
  for (const int shards : {1, 4, 16}) {
    constexpr int kWorkers = 48;
    std::vector<double> bandwidths(2 * (kWorkers + shards), 1e9);
    std::vector<Sent> flows;
    for (std::uint32_t round = 0; round < 4; ++round) {
      for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
        const double start = 0.4 * round + 0.3 * uniform({7, Purpose::data, worker, round, 0});
        for (int shard = 0; shard < shards; ++shard)
          flows.push_back({{static_cast<int>(worker), kWorkers + shard}, 10e6 / shards, start});
      }
    }
    const auto fair = ends(bandwidths, flows, true), max_min = ends(bandwidths, flows, false);
    double sum = 0, reference = 0;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      sum += fair[i] - flows[i].start;
      reference += max_min[i] - flows[i].start;
    }
    CAPTURE(shards);
    CHECK(*std::max_element(fair.begin(), fair.end()) ==
          Approx(*std::max_element(max_min.begin(), max_min.end())).epsilon(0.02));
    CHECK(sum == Approx(reference).epsilon(0.02));
  }
}

}  // namespace stepcast::bottleneck_sharing_test
