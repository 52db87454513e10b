#include "validate/launch/launcher.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "runtime/rendezvous/store.hpp"
#include "validate/launch/real_run_options.hpp"

namespace stepcast {
namespace {

/// Folder of a job in which each rank runs this program's hidden test, below.
struct Started {
  Started() {
    std::string name = (std::filesystem::temp_directory_path() / "stepcast-launch-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  Started(const Started&) = delete;
  ~Started() { std::filesystem::remove_all(folder); }

  RankJob job(int ranks, const std::string& what) const {
    RankJob job;
    job.cluster.ranks = ranks;
    job.folder = folder;
    job.heartbeat = 20;
    job.commands = [this, ranks, what](const RankJob&, const std::filesystem::path& control) {
      const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
      std::vector<std::vector<std::string>> commands;
      for (int rank = 0; rank < ranks; ++rank) {
        commands.push_back(
            {"/bin/sh", "-c",
             fmt::format("RANK={} RANKS={} CONTROL={} FOLDER={} WHAT={} exec {} '[rank-of-test]'", rank,
                         ranks, control.string(), folder.string(), what, self)});
      }
      return commands;
    };
    return job;
  }

  std::filesystem::path folder;
};

int number(const char* name) {
  return std::atoi(std::getenv(name));
}

}  // namespace

TEST_CASE("the program of a rank in the tests below", "[.][rank-of-test]") {
  if (std::getenv("RANK") == nullptr) return;
  const int rank = number("RANK"), ranks = number("RANKS");
  const std::string folder = std::getenv("FOLDER"), what = std::getenv("WHAT");
  const auto control = SharedControlBlock::open(std::getenv("CONTROL"), ranks);
  RankState& state = control->rank(RankId(rank));
  if (what == "fails" && rank == 1) _exit(3);
  state.process.store(getpid());
  set_status(state, "step 3 of a point");
  const Store store(folder + "/store", rank, what == "complains" ? 0.2 : 20);
  if (what == "dies" && rank == 1) raise(SIGKILL);
  if (what == "hangs" && rank == 1) {  // in what it has to end after an error
    std::ofstream(fmt::format("{}/rank-{}.error", folder, rank)) << "fault the cause\n";
    pause();
  }
  if (what != "complains" || rank != 1) store.put("word", std::to_string(rank));
  try {
    for (int other = ranks; other-- > 0;) {
      const std::string word = store.get(other, "word");
      if (word != std::to_string(other)) _exit(4);
    }
  } catch (const RankLost& error) {
    std::ofstream(fmt::format("{}/rank-{}.error", folder, rank)) << "lost " << error.what() << "\n";
    _exit(1);
  }
  for (std::uint32_t stage = 1; stage <= (what == "forecasts" ? 3 : 1); ++stage)
    wait_for_stage(*control, state, stage);
  state.finished.store(1);
}

TEST_CASE("ranks that are started without MPI meet at the stage barrier and finish", "[validate][launch]") {
  const int ranks = GENERATE(2, 4);
  const Started started;
  RankJob job = started.job(ranks, "works");
  int stages = 0;
  job.before_stage = [&](const auto&) { ++stages; };
  CHECK_NOTHROW(run_ranks(job));
  CHECK(stages == 1);
}

TEST_CASE("each stage of ranks with several forecasts opens once", "[validate][launch]") {
  const Started started;
  RankJob job = started.job(2, "forecasts");
  int stages = 0;
  job.before_stage = [&](const auto&) { ++stages; };
  CHECK_NOTHROW(run_ranks(job));
  CHECK(stages == 3);
}

TEST_CASE("a killed rank is named with its status, and the other ranks are ended",
          "[validate][launch][faults]") {
  const Started started;
  RankJob job = started.job(3, "dies");
  job.before_stage = [](const auto&) {};
  CHECK_THROWS_MATCHES(run_ranks(job), RankLost, Catch::Predicate<RankLost>([&](const RankLost& error) {
                         return std::string(error.what()) ==
                                fmt::format("rank 1 on {} died during step 3 of a point",
                                            host_of(job.cluster, 1));
                       }));
}

TEST_CASE("a rank's error is reported at once, also if the rank then hangs", "[validate][launch][faults]") {
  const Started started;
  RankJob job = started.job(2, "hangs");
  job.before_stage = [](const auto&) {};
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(run_ranks(job), "rank 1: the cause");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));  // the heartbeat is 20 s
}

TEST_CASE("a rank that waits in vain for another names it, and a rank that fails at once ends all ranks",
          "[validate][launch][faults]") {
  const Started started;
  RankJob job = started.job(2, "complains");
  job.before_stage = [](const auto&) {};
  CHECK_THROWS_MATCHES(run_ranks(job), RankLost, Catch::Predicate<RankLost>([&](const RankLost& error) {
                         return std::string(error.what()) ==
                                fmt::format("rank 1 put no word into the store {} within 0.2 s",
                                            (started.folder / "store").string());
                       }));
  const Started afterwards;  // a value is put once, so each run has a store of its own
  job = afterwards.job(2, "fails");
  job.before_stage = [](const auto&) {};
  CHECK_THROWS_WITH(run_ranks(job), Catch::StartsWith("the ranks failed: "));
}

TEST_CASE("all that the ranks wrote is reported where nothing else tells why they failed",
          "[validate][launch][faults]") {
  const Started started;
  RankJob job = started.job(1, "fails");
  job.commands = [](const RankJob&, const std::filesystem::path&) {
    return std::vector<std::vector<std::string>>{
        {"/bin/sh", "-c", "echo ----; echo the cause; echo; echo what follows; exit 3"}};
  };
  job.before_stage = [](const auto&) {};
  CHECK_THROWS_WITH(run_ranks(job), fmt::format("the ranks failed: see {}\n  the cause\n  what follows",
                                                (started.folder / job.log).string()));
}

TEST_CASE("ranks that die cost their point alone, whose output is kept", "[validate][launch][faults]") {
  const Started started;
  Validation three;
  for (const char* name : {"first", "second", "third"}) {
    three.points.push_back(three.scenario.points.size());
    three.scenario.points.emplace_back().name = name;
  }
  RankJob job = started.job(2, "");
  std::vector<std::string> arguments;  // of the ranks of each point, in one line
  job.commands = [&](const RankJob& own, const std::filesystem::path& control) {
    std::filesystem::remove_all(started.folder / "store");  // a value is put once
    arguments.push_back(fmt::format("{}", fmt::join(own.arguments, " ")));
    const bool second = arguments.back().ends_with("--point 1");
    return started.job(2, second ? "dies" : "works").commands(own, control);
  };
  std::vector<std::size_t> begun;
  const ValidationOptions options{.scenario = "three.yaml", .settings = {}};
  const auto failed =
      run_points_apart(job, three, options, [&](std::size_t index) { begun.push_back(index); });
  CHECK(failed == std::vector<std::string>{"second"});
  CHECK(arguments.size() == 3);
  CHECK((begun == std::vector<std::size_t>{0, 2}));
  for (const char* log : {"point-1.log", "point-2.log", "point-3.log"})
    CHECK(std::filesystem::exists(started.folder / log));
  CHECK(std::string(points_lost(failed, 3).what()) == "1 of 3 points failed: second");
  job.interrupted = [] { return true; };
  CHECK_THROWS_AS(run_points_apart(job, three, options, {}), Interrupted);
}

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
