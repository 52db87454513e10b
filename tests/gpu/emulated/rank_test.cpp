#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "fake_cuda.hpp"
#include "fake_nccl.hpp"
#include "fake_streams.hpp"
#include "gpu/ranks/gpu_rank.hpp"
#include "report/results/results.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"
#include "tests/report/temporary_folder.hpp"

// Whole ranks on fake GPUs with a fake NCCL: what `stepcast-gpu rank` does between its command line and its
// end. Two ranks are threads of this process; the test opens the stage that the launcher would.
namespace stepcast::test {
namespace {

const std::string kScenario = R"(
name: two
description: collectives, messages and a partition
trace: small-cnn-b64-cpu
platform: this-machine
batch_per_worker: 2
strategy: {kind: synchronous}
noise: {jitter: trace}
simulation: {steps: 3, seed: 1}
sweep:
  - strategy:
      - {kind: synchronous, all_reduce: ring, bucket: tensor}
      - {kind: zero, stage: 2, bucket: 100 B}
      - {kind: parameter_server, server: own_device}
      - {kind: pipeline, stages: 2, micro_batches: 2}
)";
constexpr std::size_t kPoints = 4;
const std::string kModel = R"(
name: tiny
source: test
input: [8]
layers:
  - {name: a, kind: dense, units: 12}
  - {name: r, kind: relu}
  - {name: b, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)";

struct TwoRanks {
  TwoRanks(const std::string& path, int gpus) {
    setenv("STEPCAST_DATA", STEPCAST_SOURCE_DIR, 1);
    unsetenv("PRETENDED_GPU");  // a GPU that has no file in models/devices
    fake::device_count() = gpus;
    fake::behaviour() = {};
    write_atomically(files.path() / "tiny.yaml", kModel);
    write_atomically(files.path() / "two.yaml",
                     kScenario + "model: " + (files.path() / "tiny.yaml").string() + "\n");
    std::filesystem::create_directories(out());
    prepare_launch();
    for (int rank = 0; rank < 2; ++rank) {
      RankOptions one;
      one.rank = rank;
      one.store = (files.path() / "store").string();
      one.folder = out().string();
      one.control = (files.path() / "control").string();
      one.timeout = 20;
      one.gpus.path = path;
      one.validation = {.scenario = (files.path() / "two.yaml").string(),
                        .settings = {},
                        .repeats = 2,
                        .accept_disturbed = true};
      options.push_back(one);
    }
  }

  std::filesystem::path out() const { return files.path() / "out"; }

  /// What the launcher makes anew for each launch.
  void prepare_launch() {
    control = SharedControlBlock::create(files.path() / "control", 2);
    std::filesystem::remove_all(files.path() / "store");
  }

  /// Runs both ranks, and calls `watch` meanwhile. @return the text of each rank's error
  std::vector<std::string> run(const std::function<void()>& watch = {}) {
    std::vector<std::string> errors(2);
    std::atomic<int> ended = 0, failed = 0;
    open_stage(*control, 1);  // no point chooses an algorithm, so the ranks need no forecast
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          run_gpu_rank(options[rank]);
        } catch (const std::exception& error) {
          write_rank_error(options[rank], error);
          errors[rank] = error.what();
          ++failed;
        }
        ++ended;
      });
    }
    int left = kLongest;
    while (ended != 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (watch) watch();
      if (failed != 0 && left-- == 0) end_at_once();
    }
    return errors;
  }

  /// Ends the program where the launcher would kill a rank: the other one has failed and this one still
  /// waits.
  void end_at_once() const {
    for (int rank = 0; rank < 2; ++rank) {
      const auto file = out() / ("rank-" + std::to_string(rank) + ".error");
      std::cerr << "rank " << rank << ", " << control->rank(RankId(rank)).status << ": "
                << (std::filesystem::exists(file) ? read_file(file) : "waits\n") << std::flush;
    }
    std::_Exit(1);
  }

  static constexpr int kLongest = 15000;  ///< that a rank may wait for another one that has failed [2 ms]
  TemporaryFolder files;
  std::unique_ptr<SharedControlBlock> control;
  std::vector<RankOptions> options;
};

}  // namespace

TEST_CASE("ranks on GPUs capture, measure links and run every point, by NCCL and through the host",
          "[fake][ranks][long]") {
  const bool nccl = GENERATE(true, false);
  TwoRanks two(nccl ? "nccl" : "host", nccl ? 2 : 1);
  for (RankOptions& one : two.options) one.gpus.options.graphs = nccl;
  fake::behaviour().answers_in_progress = 2;
  CHECK(two.run() == std::vector<std::string>(2));
  const auto rows = read_json_lines(read_file(two.out() / "samples.jsonl"), "samples.jsonl").rows;
  CHECK(rows.size() == 2 * kPoints);
  for (const Row& row : rows) CHECK(row.number("step_seconds").value_or(0) > 0);
  // A GPU that has no file in models/devices ends nothing.
  const std::string platform = read_file(two.out() / "platform.yaml");
  CHECK_THAT(platform, Catch::Contains("h200"));
  CHECK_THAT(platform, Catch::Contains(nccl ? "by NCCL" : "through the host"));
  const bool graphs =
      read_file(two.out() / "tiny-b2.yaml").find("replayed as CUDA graphs") != std::string::npos;
  CHECK(graphs == nccl);
  CHECK((fake::behaviour().calls > 0) == nccl);
  CHECK(two.control->rank(RankId{0}).finished.load() == 1);
  CHECK(two.control->rank(RankId{1}).finished.load() == 1);
}

TEST_CASE("ranks that only measure run no point, and the ranks of each point measure nothing again",
          "[fake][ranks]") {
  const bool nccl = GENERATE(true, false);
  TwoRanks two(nccl ? "nccl" : "host", nccl ? 2 : 1);
  for (RankOptions& one : two.options) one.measure_only = true;
  CHECK(two.run() == std::vector<std::string>(2));
  CHECK(!std::filesystem::exists(two.out() / "samples.jsonl"));
  const auto written = [&two](const char* file) {
    return std::filesystem::last_write_time(two.out() / file);
  };
  const auto links = written("platform.yaml"), trace = written("tiny-b2.yaml");
  for (std::size_t point = 0; point < kPoints; ++point) {
    two.prepare_launch();
    for (RankOptions& one : two.options) {
      one.measure_only = false;
      one.validation.point = point;
    }
    CHECK(two.run() == std::vector<std::string>(2));
  }
  CHECK(read_json_lines(read_file(two.out() / "samples.jsonl"), "samples.jsonl").rows.size() == 2 * kPoints);
  CHECK(written("platform.yaml") == links);
  CHECK(written("tiny-b2.yaml") == trace);
}

TEST_CASE("ranks on the second and the third GPU use no memory of the first", "[fake][ranks]") {
  TwoRanks two("nccl", 3);
  for (RankOptions& one : two.options) {
    one.gpus.options.device = "cuda:1";
    one.validation.settings = {"sweep=[{strategy: [{kind: parameter_server, server: own_device}]}]"};
  }
  fake::forget_contexts();
  CHECK(two.run() == std::vector<std::string>(2));
  CHECK(fake::contexts() == std::set<int>{1, 2});
}

TEST_CASE("a rank that NCCL fails leaves its traces and the cause, and hangs nowhere",
          "[fake][ranks][long][errors]") {
  // The first call of all, one among the measurements of links, or one of the points' runs.
  const std::string when = GENERATE("connecting", "measuring", "running");
  TwoRanks two("nccl", 2);
  if (when != "running") fake::behaviour().fails_at = when == "connecting" ? 0 : 40;
  bool running = false;
  const std::vector<std::string> errors = two.run([&] {
    if (when != "running" || running) return;
    running = std::string(two.control->rank(RankId{0}).status).ends_with("(repeat 1)");
    if (running) fake::fail_next_call();
  });
  CAPTURE(when, errors);
  std::string causes;
  for (int rank = 0; rank < 2; ++rank) {
    const auto file = two.out() / ("rank-" + std::to_string(rank) + ".error");
    REQUIRE(std::filesystem::exists(file));
    causes += read_file(file);
    CHECK(two.control->rank(RankId(rank)).finished.load() == 0);
  }
  CHECK_THAT(causes, Catch::StartsWith("lost rank "));
  CHECK_THAT(causes, Catch::Contains("NCCL gave up during "));
  CHECK(std::filesystem::exists(two.out() / "tiny-b2.yaml"));
}

TEST_CASE("a rank writes its error before it leaves NCCL, where it could hang", "[fake][ranks][errors]") {
  TwoRanks two("nccl", 2);
  std::atomic<int> left = 0, unwritten = 0;
  fake::behaviour().on_leaving = [&](int rank) {
    ++left;
    if (!std::filesystem::exists(two.out() / ("rank-" + std::to_string(rank) + ".error"))) ++unwritten;
  };
  for (RankOptions& one : two.options)
    one.validation.settings = {"sweep=[{strategy: [{kind: synchronous, all_reduce: mpi}]}]"};
  for (const std::string& error : two.run()) CHECK_THAT(error, Catch::Contains("cannot be run for real"));
  CHECK(left == 2);
  CHECK(unwritten == 0);
  fake::behaviour() = {};
}

}  // namespace stepcast::test
