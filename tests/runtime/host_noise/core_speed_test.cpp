#include "runtime/host_noise/core_speed.hpp"

#include <catch2/catch.hpp>

namespace stepcast {

TEST_CASE("interrupted probes do not count for the machine's speed", "[validate]") {
  CHECK(mean_of_probes({1.0, 1.2}, 1) == Approx(1.1));
  CHECK(mean_of_probes({0.9, 2.6, 1.1, 1.51}, 1) == Approx(1.0));
  CHECK(mean_of_probes({2.6, 1.51}, 1) == Approx(1.5));  // slower than the limit, by an unknown factor
  CHECK(mean_of_probes({0.03, 0.02}, 0.02) == Approx(0.025));
}

}  // namespace stepcast
