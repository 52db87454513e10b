#include <catch2/catch.hpp>

#include "validate/capture/message_times.hpp"

namespace stepcast {

TEST_CASE("interrupted all-reduces do not count in their mean", "[validate]") {
  CHECK(uninterrupted_mean({1, 2, 3, 6, 40}) == Approx(3));
  CHECK(uninterrupted_mean({5}) == 5);
}

}  // namespace stepcast
