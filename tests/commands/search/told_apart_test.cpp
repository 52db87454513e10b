#include "commands/search/told_apart.hpp"

#include <catch2/catch.hpp>
#include <numeric>

using namespace stepcast;

TEST_CASE("settings that differ by less than their own errors are not told apart", "[commands]") {
  const auto close = best_probabilities({{100}, {100.2}, {80}}, 0.02);
  CHECK(std::accumulate(close.begin(), close.end(), 0.0) == Approx(1));
  CHECK(close[1] == Approx(0.53).margin(0.08));  // normal distribution: 0.1 / 1.41 standard deviations
  CHECK(close[2] == 0);
  CHECK(told_apart_line({"a", "b", "c"}, close).starts_with("cannot be told apart, 2 of 3: b ("));
  const auto clear = best_probabilities({{100}, {120}}, 0.02);
  CHECK(clear == std::vector<double>{0, 1});
  CHECK(told_apart_line({"a", "b"}, clear) == "best of 2: b (100 %)");
}

TEST_CASE("draws in which different settings win count by their number", "[commands]") {
  const auto won = best_probabilities({{100, 100, 100, 50}, {50, 50, 50, 100}}, 0.02);
  CHECK(won[0] == Approx(0.75));
}
