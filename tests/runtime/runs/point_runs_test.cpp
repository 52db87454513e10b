#include "runtime/runs/point_runs.hpp"

#include <catch2/catch.hpp>

namespace stepcast::point_runs_test {

TEST_CASE("runs at the reference speed count, and the nearest others if there are too few", "[validate]") {
  const double off = 2 * kMaxSpeedDeviation;
  const std::vector<RunQuality> runs{{0, false, off},
                                     {1, true, 0},
                                     {0, false, 0},
                                     {1, false, 2 * off},
                                     {0, true, 0},
                                     {1, false, off},
                                     {0, false, kMaxSpeedDeviation},
                                     {1, false, 3 * off}};
  CHECK(select_runs(runs, 2) == std::vector<bool>{false, false, true, true, false, true, true, false});
  CHECK(select_runs(runs, 1) == std::vector<bool>{false, false, true, false, false, true, true, false});
  CHECK(select_runs({}, 1).empty());
}

TEST_CASE("points are run until enough runs count or their budget is used up", "[validate]") {
  const double off = 2 * kMaxSpeedDeviation;
  const std::vector<RunQuality> runs{{0, false, 0}, {0, true, 0},   {1, false, off}, {1, false, off},
                                     {2, true, 0},  {2, true, off}, {2, true, 0},    {3, false, off}};
  CHECK(unfinished_points(runs, 5, {1, 2, 3}) == std::vector<std::size_t>{3, 4});
  CHECK(unfinished_points(runs, 5, {2, 2, 3}) == std::vector<std::size_t>{0, 3, 4});
  CHECK(unfinished_points(runs, 5, {2, 3, 4}) == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

}  // namespace stepcast::point_runs_test
