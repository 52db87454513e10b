#include <catch2/catch.hpp>
#include <string>

#include "validate/launch/real_run_options.hpp"

namespace stepcast {

TEST_CASE("ranks with a GPU each use NCCL, and ranks that share a GPU communicate through the host",
          "[validate][gpu-ranks]") {
  const auto at = [](const char* path, int first, int gpus, int rank, int ranks) {
    const GpuPlace place = gpu_place(path, first, gpus, rank, ranks);
    return std::pair{place.device, place.nccl};
  };
  CHECK(at("auto", 0, 4, 3, 4) == std::pair{3, true});
  CHECK(at("auto", 1, 4, 2, 3) == std::pair{3, true});
  CHECK(at("auto", 1, 4, 3, 4) == std::pair{1, false});
  CHECK(at("auto", 0, 1, 1, 2) == std::pair{0, false});
  CHECK(at("host", 0, 2, 1, 2) == std::pair{1, false});
  CHECK(at("nccl", 0, 2, 1, 2) == std::pair{1, true});
}

TEST_CASE("a rank on a GPU waits half as long for others as it may be silent, and has all options of the GPU",
          "[validate][gpu-ranks]") {
  GpuRanks gpus;
  RankJob job;
  job.cluster.ranks = 2;
  job.folder = "/folder";
  CHECK(job.heartbeat == 30);
  const auto words = [&](int rank) {
    std::string all = " ";
    const auto commands = gpu_rank_commands("stepcast-gpu", gpus, job, "/control");
    for (const std::string& word : commands.at(rank)) all += word + " ";
    return all;
  };
  CHECK_THAT(words(1), Catch::StartsWith(" stepcast-gpu rank --rank 1 --ranks 2 "));
  CHECK_THAT(words(0), Catch::Contains(" --stall-timeout 15 ") && !Catch::Contains("--no-fusion") &&
                           !Catch::Contains("--graphs"));
  gpus.options = {.device = "cuda:1",
                  .precision = "bf16",
                  .layout = "nhwc",
                  .workspace_mib = 64,
                  .no_fusion = true,
                  .graphs = true};
  CHECK_THAT(words(0), Catch::Contains(" --device cuda:1 --precision bf16 --layout nhwc --workspace 64 ") &&
                           Catch::Contains(" --no-fusion --graphs "));
}

TEST_CASE("NCCL is refused for two ranks of one GPU, and an error says that there is no GPU",
          "[validate][gpu-ranks][errors]") {
  CHECK_THROWS_WITH(gpu_place("nccl", 0, 1, 0, 2),
                    "--path nccl: NCCL refuses two ranks on one GPU, and there are 2 ranks for 1 GPU; --path "
                    "host lets them share");
  CHECK_THROWS_WITH(gpu_place("auto", 0, 0, 0, 2), "--device cuda:0: CUDA sees no GPUs here");
  CHECK_THROWS_WITH(gpu_place("auto", 2, 2, 0, 2), "--device cuda:2: CUDA sees 2 GPUs here");
}

}  // namespace stepcast
