#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "gpu/ranks/gpu_rank.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast {

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

}  // namespace stepcast
