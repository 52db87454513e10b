#include "gpu/ranks/gpu_rank.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "../runtime/ranks.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "gpu/capture/selection.hpp"
#include "gpu/nccl/nccl_group.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast::gpu_rank_test {
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
  CHECK(device_file_of("Tesla P100-PCIE-12GB") == "p100-pcie");
  CHECK_THROWS_AS(device_file_of("NVIDIA H200 NVL"), InputError);
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

TEST_CASE("the first error of a rank is the one that is kept", "[gpu-ranks][faults]") {
  const TemporaryFolder folder;
  RankOptions options;
  options.rank = 1;
  options.folder = folder.path().string();
  write_rank_error(options, std::runtime_error("an illegal memory access"));
  write_rank_error(options, RankLost("rank 1 gave up"));
  CHECK(read_file(folder.path() / "rank-1.error") == "fault an illegal memory access\n");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("NCCL uses the loopback and warns, streams have queues of their own, and what users set stays",
          "[gpu-ranks]") {
  for (const char* name : {"NCCL_SOCKET_IFNAME", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING"})
    unsetenv(name);
  set_rank_environment("host");
  CHECK(std::getenv("NCCL_SOCKET_IFNAME") == nullptr);
  setenv("NCCL_DEBUG", "INFO", 1);
  set_rank_environment("auto");
  CHECK(std::getenv("NCCL_SOCKET_IFNAME") == std::string("lo"));
  CHECK(std::getenv("NCCL_DEBUG") == std::string("INFO"));
  CHECK(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS") == std::string("32"));
  unsetenv("NCCL_DEBUG");
  set_rank_environment("nccl");
  CHECK(std::getenv("NCCL_DEBUG") == std::string("WARN"));
}
}  // namespace stepcast::gpu_rank_test
