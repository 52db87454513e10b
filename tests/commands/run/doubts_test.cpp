#include "commands/run/doubts.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

TEST_CASE("doubts are named by their subject, the largest first, without those below 5 %", "[commands]") {
  CHECK(
      doubt_sentence({{"platform.network.bandwidth", 0.1},
                      {"factors.host_work", 0.6},
                      {"factors.between_servers_bandwidth", 0.2},
                      {"noise.sigma", 0.04},
                      {"own.key", 0.06}},
                     "the step time at workers=64") ==
      "Not known, as shares of the variance of the step time at workers=64: host 60 %, network 30 %, own.key "
      "6 %.");
  CHECK(doubt_sentence(
            {{"factors.layer_times", 0.7}, {"factors.kernel_start", 0.1}, {"noise.device_spread", 0.2}},
            "x") == "Not known, as shares of the variance of x: layer times 80 %, spread of devices 20 %.");
  CHECK(doubt_sentence({{"noise.sigma", 0.04}}, "x").empty());
  CHECK(doubt_sentence({}, "x").empty());
}
