#include "runtime/host_noise/repeated_timing.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <mutex>
#include <set>
#include <vector>

#include "ranks.hpp"

namespace stepcast::repeated_timing_test {

TEST_CASE("interrupted probes do not count for the machine's speed", "[validate]") {
  CHECK(mean_of_probes({1.0, 1.2}, 1) == Approx(1.1));
  CHECK(mean_of_probes({0.9, 2.6, 1.1, 1.51}, 1) == Approx(1.0));
  CHECK(mean_of_probes({2.6, 1.51}, 1) == Approx(1.5));  // slower than the limit, by an unknown factor
  CHECK(mean_of_probes({0.03, 0.02}, 0.02) == Approx(0.025));
}

TEST_CASE("all ranks get the same core-to-core latency, and whether it is at its baseline", "[validate]") {
  std::mutex mutex;
  std::set<double> distances, settled;
  run_ranks("memory", 3, [&](Transport& transport, Transport&) {
    CoreToCoreLatency cores(transport);
    cores.set_baseline(0.1);
    const double distance = cores.round_trip();
    const bool is = cores.is_at_baseline();
    const std::lock_guard lock(mutex);
    CHECK_FALSE(cores.is_at_baseline(0));
    CHECK_FALSE(cores.is_at_baseline(1));
    distances.insert(distance);
    settled.insert(is ? 1 : 0);
  });
  CHECK(distances.size() == 1);
  CHECK(*distances.begin() > 0);
  CHECK(settled.size() == 1);
}

TEST_CASE("interleaved functions are repeated equally often, and their difference is taken within each round",
          "[validate]") {
  run_ranks("memory", 2, [&](Transport& transport, Transport&) {
    std::vector<int> calls(2, 0);
    const auto all = time_interleaved(transport, 0.01, {[&] { ++calls[0]; }, [&] { ++calls[1]; }});
    CHECK(calls[0] == calls[1]);
    CHECK(static_cast<int>(all.at(0).seconds.size()) ==
          calls[0] - 1);  // the first call is used to plan the number
    CHECK(all.at(1).seconds.size() == all.at(0).seconds.size());
    CHECK(all.at(0).stolen == all.at(1).stolen);
  });
  // The machine's speed doubles and falls; a disturbed round does not count if there are enough others.
  const Repeats less{{1, 2, 4, 1, 1}, {0, 0, 0, 0, 1}, 0}, more{{1.5, 2.5, 4.5, 1.5, 9}, {0, 0, 0, 0, 1}, 0};
  CHECK(median_difference(more, less) == Approx(0.5));
}

}  // namespace stepcast::repeated_timing_test

namespace stepcast::clock_offset_test {

TEST_CASE("ranks with one clock are apart by less than a round trip", "[validate]") {
  for (const char* kind : {"memory", "sockets"}) {
    std::vector<double> offsets(3, 1);
    run_ranks(kind, 3, [&](Transport& transport, Transport&) {
      offsets[transport.rank().index()] = clock_offset_to_rank_0(transport);
    });
    CHECK(offsets[0] == 0);
    for (const double offset : offsets) CHECK(std::abs(offset) < 0.5);  // a busy machine may suspend a thread
  }
}

TEST_CASE("texts of any length arrive on rank 0", "[validate]") {
  const std::vector<std::string> sent{"", "seven b", std::string(100'001, 'x') + '\0' + "end"};
  std::vector<std::string> got;
  run_ranks("sockets", 3, [&](Transport& transport, Transport&) {
    const auto all = gather_texts_on_rank_0(transport, sent[transport.rank().index()]);
    if (transport.is_rank_0()) got = all;
  });
  CHECK(got == sent);
}

}  // namespace stepcast::clock_offset_test
