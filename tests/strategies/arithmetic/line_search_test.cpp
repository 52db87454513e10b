#include "strategies/arithmetic/line_search.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace stepcast;

TEST_CASE("a line search on a parabola ends where the slope has become small", "[strategies][arithmetic]") {
  const double least = GENERATE(0.01, 0.6, 1.0, 3.0, 500.0);  // f(a) = (a - least)^2 / 2
  LineSearch search{.slope = -least};
  while (!search.accepts(search.length - least)) {
  }
  CHECK(search.trials < 12);
  const double share = (search.length - least) / -least;  // of the slope at the start
  CHECK(share <= 0.9);
  CHECK(share >= -0.8);
}

TEST_CASE("a derivative that is not finite means that the step is too long", "[strategies][arithmetic]") {
  LineSearch search{.slope = -1, .length = 8};
  CHECK_FALSE(search.accepts(std::nan("")));
  CHECK(search.length == 4);
  CHECK_FALSE(search.accepts(HUGE_VAL));
  CHECK(search.length == 2);
  CHECK(search.accepts(0));
}

TEST_CASE("a line search without an end accepts after its last trial", "[strategies][arithmetic]") {
  LineSearch search{.slope = -1};
  for (int i = 0; i < LineSearch::kMaxRefused; ++i) CHECK_FALSE(search.accepts(1));
  CHECK(search.accepts(1));
}
