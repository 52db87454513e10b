#include "validate/machine_speed.hpp"

#include <catch2/catch.hpp>

namespace stepcast {

TEST_CASE("probes that were interrupted tell nothing of a machine's speed", "[validate]") {
  CHECK(mean_of_probes({1.0, 1.2}, 1) == Approx(1.1));
  CHECK(mean_of_probes({0.9, 2.6, 1.1, 1.51}, 1) == Approx(1.0));
  CHECK(mean_of_probes({2.6, 1.51}, 1) == Approx(1.5));  // slow beyond doubt, by how much nobody knows
  CHECK(mean_of_probes({0.03, 0.02}, 0.02) == Approx(0.025));
}

}  // namespace stepcast
