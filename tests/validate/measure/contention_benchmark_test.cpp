#include <catch2/catch.hpp>

#include "runtime/host_noise/repeated_timing.hpp"
#include "validate/measure/link_benchmark.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {

TEST_CASE("the compute slowdown explains the time that was lost", "[validate]") {
  CHECK(compute_slowdown(0.1, 0.02, 0.1) == 1);           // all overlapped
  CHECK(compute_slowdown(0.1, 0.02, 0.11) == Approx(2));  // 20 ms at half speed: 10 ms late
  CHECK(compute_slowdown(0.1, 0.02, 0.12) == 100);        // nothing overlapped
  CHECK(compute_slowdown(0.1, 0.02, 0.3) == 100);
  CHECK(compute_slowdown(0.1, 0.02, 0.09) == 1);  // noise
}

TEST_CASE("beside a server's messages, compute loses three quarters of what it loses beside an all-reduce",
          "[validate]") {
  CHECK(message_slowdown(1) == 1);
  for (const double slowdown : {1.2, 2.0, 100.0})
    CHECK(1 - 1 / message_slowdown(slowdown) == Approx(0.75 * (1 - 1 / slowdown)));
}

TEST_CASE("disturbed repeats do not count, except the least disturbed ones if there are too few",
          "[validate]") {
  Repeats repeats;
  repeats.seconds = {5, 1, 9, 2, 3};
  repeats.stolen = {0.2, 0, 0.5, 0.04, 0.01};
  CHECK(undisturbed_seconds(repeats) == std::vector<double>{1, 3, 2});
  repeats.stolen = {0.2, 0, 0.5, 0.3, 0.4};
  CHECK(undisturbed_seconds(repeats) == std::vector<double>{1, 5, 2});
  CHECK(undisturbed_seconds({}).empty());
}

TEST_CASE("the hand-over time to the progress thread is read if it was measured", "[validate]") {
  LinkMeasurement one{LinkMeasurement::What::hand_over};
  one.seconds = 2e-5;
  CHECK(contention_of({one}).hand_over == 2e-5);
  CHECK(contention_of({}).hand_over == 0);
}

}  // namespace stepcast
