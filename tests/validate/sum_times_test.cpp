#include "validate/sum_times.hpp"

#include <catch2/catch.hpp>

namespace stepcast {

TEST_CASE("sums that were interrupted do not count to their mean", "[validate]") {
  CHECK(uninterrupted_mean({1, 2, 3, 6, 40}) == Approx(3));
  CHECK(uninterrupted_mean({5}) == 5);
}

}  // namespace stepcast
