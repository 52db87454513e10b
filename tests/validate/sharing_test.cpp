#include <catch2/catch.hpp>

#include "validate/measure_sharing.hpp"
#include "validate/measured_links.hpp"
#include "validate/repeats.hpp"

namespace stepcast {

TEST_CASE("slow-down of compute is what stretches it by what was lost", "[validate]") {
  CHECK(compute_slowdown(0.1, 0.02, 0.1) == 1);           // all hidden
  CHECK(compute_slowdown(0.1, 0.02, 0.11) == Approx(2));  // for 20 ms at half speed: 10 ms late
  CHECK(compute_slowdown(0.1, 0.02, 0.12) == 100);        // nothing hidden
  CHECK(compute_slowdown(0.1, 0.02, 0.3) == 100);
  CHECK(compute_slowdown(0.1, 0.02, 0.09) == 1);  // noise
}

TEST_CASE("repeats that the host disturbed do not count, but for the least disturbed of too few",
          "[validate]") {
  Repeats repeats;
  repeats.seconds = {5, 1, 9, 2, 3};
  repeats.stolen = {0.2, 0, 0.5, 0.04, 0.01};
  CHECK(undisturbed(repeats) == std::vector<double>{1, 3, 2});
  repeats.stolen = {0.2, 0, 0.5, 0.3, 0.4};
  CHECK(undisturbed(repeats) == std::vector<double>{1, 5, 2});
  CHECK(undisturbed({}).empty());
}

TEST_CASE("what handing work to the communication thread takes is read where it was measured", "[validate]") {
  Row row;
  row.set("what", std::string("hand_over"));
  row.set("bytes", 0.0);
  row.set("seconds", 2e-5);
  CHECK(sharing_of({"calibrate", {row}}).hand_over == 2e-5);
  CHECK(sharing_of({"calibrate", {}}).hand_over == 0);
}

}  // namespace stepcast
