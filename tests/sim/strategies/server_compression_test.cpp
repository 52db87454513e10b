#include <catch2/catch.hpp>

#include "tests/sim/server_run.hpp"

namespace stepcast::server_compression_test {

namespace {

constexpr double kApply = 0.002;
const std::string kServer = "{kind: parameter_server, server: own_host, apply_time: 2 ms";

const auto exactly = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };

}  // namespace

TEST_CASE("a compressed update is quantized, sent smaller and restored, and parameters come back whole",
          "[sim]") {
  const auto step = [](const std::string& more) {
    return number_from_child([&] { return ServerRun{kServer + more + "}", 1, 0, 4, {}}.step_seconds(); });
  };
  constexpr double kBytes = 4e6;
  const auto with = [&](double sent, double restored) {
    return kMiniBatch + kOwnUpdate + kBytes * 1e-9 + (kHop + sent / 1e9) + restored * 2e-9 + kApply +
           (kHop + kModel);
  };
  CHECK(step(", compression: fp16") == exactly(with(kBytes / 2, kBytes)));
  CHECK(step(", compression: top_k, density: 0.01") == exactly(with(0.02 * kBytes, 0.01 * kBytes)));
  const double bits = kBytes / 32 + 1000 * (8 + 3);  // columns of 1,000: 32 words each, not 31.25
  CHECK(step(", compression: one_bit") == exactly(with(bits, kBytes)));
  // Four shards restore a quarter each at the same time.
  const double restored = kBytes * 2e-9, sharded = step(", compression: fp16, shards: 4");
  CHECK(step(", shards: 4") - sharded == Approx(kModel / 2 - kBytes * 1e-9 - restored / 4).epsilon(1e-6));
}

TEST_CASE("a server on a device restores with the device's kernels", "[sim]") {
  const auto step = [](const std::string& more) {
    return number_from_child([&] {
      const std::string text = "{kind: parameter_server, server: own_device, apply_time: 2 ms" + more + "}";
      return ServerRun{text, 1, 0, 4, {}}.step_seconds();
    });
  };
  CHECK(step("") - step(", compression: fp16") == exactly(kModel / 2 - 4e6 * (1e-9 + 5e-10)));
}

}  // namespace stepcast::server_compression_test
