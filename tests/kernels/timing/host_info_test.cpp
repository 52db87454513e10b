#include "kernels/timing/host_info.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

TEST_CASE("stolen time is the eighth figure of the system's first line", "[kernels]") {
  CHECK(stolen_seconds("cpu  139253 0 11175 43572 749 0 133 4401 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n", 100) ==
        44.01);
  CHECK(stolen_seconds("cpu  139253 0 11175 43572 749 0 133\n", 100) == 0);  // Linux before 2.6.11
  CHECK(stolen_seconds("", 100) == 0);
}

TEST_CASE("stolen time never decreases and is at most the elapsed time", "[kernels]") {
  const double before = stolen_seconds();
  const StolenShare share;
  CHECK(share.until_now() >= 0);
  CHECK(share.until_now(share.seconds() + 1) == 0);
  CHECK(stolen_seconds() >= before);
}
