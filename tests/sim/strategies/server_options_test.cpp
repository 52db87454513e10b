#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "tests/sim/server_run.hpp"

namespace stepcast::server_options_test {
namespace {

std::string refusal(const std::string& strategy, int workers = 4, int nodes = 6) {
  try {
    ServerRun{strategy, workers, nodes, 2, {}}.plan();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("servers without a place are refused", "[errors]") {
  CHECK(refusal("{kind: parameter_server, shards: 3, server: own_host}") ==
        "s.yaml:1:55: strategy.server: 3 servers need a node each in addition to 4 workers, but 2 of "
        "platform test "
        "are free; set platform.nodes, or server: colocated");
  CHECK(refusal("{kind: parameter_server, shards: 3, server: colocated}").empty());
}

TEST_CASE("groups that do not divide the workers are refused", "[errors]") {
  CHECK(refusal("{kind: elastic_averaging, group_size: 3}") ==
        "s.yaml:1:49: strategy.group_size: 4 devices cannot form workers of 3; give a divisor");
}

TEST_CASE("a serial master cannot be overlapped", "[errors]") {
  CHECK(refusal("{kind: parameter_server, master: serial, overlap: true}")
            .find("strategy.overlap: not valid with master: serial") != std::string::npos);
}

TEST_CASE("synchronous rounds overlap only array by array", "[errors]") {
  CHECK(refusal("{kind: parameter_server, mode: synchronous, overlap: true}")
            .find("strategy.overlap: only valid with messages: array if mode is synchronous") !=
        std::string::npos);
}

TEST_CASE("backup workers belong to the synchronous mode and must leave one", "[errors]") {
  CHECK(refusal("{kind: parameter_server, backup_workers: 1}").find("only valid with mode: synchronous") !=
        std::string::npos);
  CHECK(refusal("{kind: parameter_server, mode: synchronous, backup_workers: 4}")
            .find("expected fewer than 4 backup workers, got 4") != std::string::npos);
}

TEST_CASE("updates of mixed precision are not compressed further, and density belongs to top_k", "[errors]") {
  CHECK(refusal("{kind: parameter_server, compression: fp16, precision: mixed}") ==
        "s.yaml:1:49: strategy.compression: not supported with precision: mixed; set precision: f32");
  CHECK(refusal("{kind: parameter_server, compression: fp16, density: 0.1}") ==
        "s.yaml:1:64: strategy.density: only valid with compression: top_k");
}

TEST_CASE("more sub-masters than workers are refused", "[errors]") {
  CHECK(refusal("{kind: elastic_averaging, sub_masters: 5, server: colocated}")
            .find("5 sub-masters for 4 workers") != std::string::npos);
}

TEST_CASE("shards that cannot be dealt out to the machines of a replica are refused", "[errors]") {
  CHECK(refusal("{kind: parameter_server, shards: 3, machines_per_replica: 2}")
            .find("cannot be assigned evenly") != std::string::npos);
}

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
}  // namespace stepcast::server_options_test
