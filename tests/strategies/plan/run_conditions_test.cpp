#include "strategies/plan/run_conditions.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace stepcast;

TEST_CASE("workers replay measured steps of their own rank, and those of one moment together",
          "[strategies]") {
  Noise noise;
  noise.jitter = Noise::Jitter::trace;
  const MeasuredSteps measured{.count = 12, .ranks = 3};
  std::set<int> seen;
  for (std::uint32_t step = 0; step < 200; ++step) {
    const int moment = draw(noise, 1, 0, step, measured).sample;
    REQUIRE((moment >= 0 && moment < 4));
    CHECK(draw(noise, 1, 1, step, measured).sample == 4 + moment);
    CHECK(draw(noise, 1, 2, step, measured).sample == 8 + moment);
    const int other = draw(noise, 1, 3, step, measured).sample;  // a machine of its own, of the first's speed
    CHECK((other >= 0 && other < 4));
    seen.insert(4 * moment + other);
  }
  CHECK(seen.size() == 16);
}

TEST_CASE("without a measured step there is none to replay", "[strategies]") {
  Noise noise;
  CHECK(draw(noise, 1, 0, 0, {.count = 12}).sample == -1);
  noise.jitter = Noise::Jitter::trace;
  CHECK(draw(noise, 1, 0, 0, {}).sample == -1);
}
