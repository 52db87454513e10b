#include <catch2/catch.hpp>

#include "../runtime/ranks.hpp"
#include "core/error.hpp"
#include "gpu/capture/selection.hpp"
#include "gpu/nccl/nccl_group.hpp"
#include "gpu/ranks/gpu_rank.hpp"

using namespace stepcast;

TEST_CASE("all-reduces over P ranks yield times of messages of 1/P of the bytes, on rank 0", "[gpu]") {
  const int ranks = GENERATE(2, 3);
  std::vector<std::vector<MessageTime>> times(ranks);
  std::vector<std::int64_t> largest(times.size());
  run_ranks("memory", ranks, [&](Transport& transport) {
    const auto rank = transport.rank().index();
    times[rank] = message_times_of(transport, 5000, [&](std::int64_t elements) {
      largest[rank] = std::max(largest[rank], elements);
      barrier(transport);
    });
  });
  CHECK(largest == std::vector<std::int64_t>(times.size(), 4096));
  CHECK(times[1].empty());
  REQUIRE(times[0].size() == 3);  // 256, 1024 and 4096 floats
  CHECK(times[0][2].size.value == Approx(4.0 * 4096 / ranks));
  CHECK(times[0][0].time.value > 0);
}

TEST_CASE("a GPU's name selects its file, or an error that says what to do", "[gpu][errors]") {
  CHECK(device_file_of("NVIDIA H100 80GB HBM3") == "h100-sxm");
  CHECK(device_file_of("NVIDIA H200") == "h200");
  CHECK(device_file_of("NVIDIA A100-SXM4-40GB") == "a100-40gb");
  CHECK(device_file_of("NVIDIA A100-SXM4-80GB") == "a100-80gb");
  CHECK(device_file_of("NVIDIA L4") == "l4");
  CHECK(device_file_of("NVIDIA L40S") == "l40s");
  CHECK(device_file_of("NVIDIA GB200") == "gb200");
  CHECK_THROWS_WITH(
      device_file_of("NVIDIA A2"),
      "models/devices has no file for NVIDIA A2: add one, or name the most similar device with --device-file "
      "NAME");
}

TEST_CASE("each NCCL communicator has a unique id, which is made without a GPU", "[gpu]") {
  try {
    const std::string one = nccl_unique_id(), other = nccl_unique_id();
    CHECK(one.size() == 128);
    CHECK(one != other);
  } catch (const InputError& error) {
    CHECK_THAT(error.what(),
               Catch::StartsWith("--path: nccl is not available: stepcast-gpu was built without NCCL"));
  }
}
