#include "validate/core_distance.hpp"

#include <catch2/catch.hpp>
#include <mutex>
#include <set>

#include "ranks.hpp"
#include "validate/repeats.hpp"

namespace stepcast {

TEST_CASE("all ranks know the same distance of their cores, and whether it is as it was", "[validate]") {
  std::mutex mutex;
  std::set<double> distances, settled;
  run_ranks("memory", 3, [&](Transport& transport, Transport&) {
    CoreDistance cores(transport);
    cores.settle(0.1);
    const double distance = cores.round_trip();
    const bool is = cores.is_settled();
    const std::lock_guard lock(mutex);
    CHECK_FALSE(cores.is_settled(0));
    CHECK_FALSE(cores.is_settled(1));
    distances.insert(distance);
    settled.insert(is ? 1 : 0);
  });
  CHECK(distances.size() == 1);
  CHECK(*distances.begin() > 0);
  CHECK(settled.size() == 1);
}

TEST_CASE("things in turn are repeated equally often, and their difference is that of each turn",
          "[validate]") {
  run_ranks("memory", 2, [&](Transport& transport, Transport&) {
    std::vector<int> calls(2, 0);
    const auto all = repeated_in_turn(transport, 0.01, {[&] { ++calls[0]; }, [&] { ++calls[1]; }});
    CHECK(calls[0] == calls[1]);
    CHECK(static_cast<int>(all.at(0).seconds.size()) == calls[0] - 1);  // the first one tells how often
    CHECK(all.at(1).seconds.size() == all.at(0).seconds.size());
    CHECK(all.at(0).stolen == all.at(1).stolen);
  });
  // The machine's speed doubles and falls; a turn that was disturbed does not count where enough others do.
  const Repeats less{{1, 2, 4, 1, 1}, {0, 0, 0, 0, 1}, 0}, more{{1.5, 2.5, 4.5, 1.5, 9}, {0, 0, 0, 0, 1}, 0};
  CHECK(median_difference(more, less) == Approx(0.5));
}

}  // namespace stepcast
