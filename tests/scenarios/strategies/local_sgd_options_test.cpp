#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "core/os/files.hpp"
#include "models/layer_times/compression_times.hpp"
#include "scenario_text.hpp"

using namespace stepcast;

namespace {

/// The error message for the last of `settings`, on eight workers of a scenario.
void refused(const std::string& scenario, std::vector<std::string> settings, const std::string& message) {
  settings.insert(settings.begin(), "workers=8");
  CHECK_THROWS_WITH(shipped_experiment(scenario, settings), "--set " + settings.back() + ": " + message);
}

void refused_block(const std::string& setting, const std::string& message) {
  refused("chen-huo-dnn-bmuf", {setting}, message);
}

void refused_bmuf(const std::string& setting, const std::string& message) {
  refused("chen-huo-dnn-bmuf", {"strategy.kind=bmuf", "strategy.block_momentum=0.9", setting}, message);
}

double own_figure(const Experiment& experiment, const std::string& name) {
  for (const auto& [column, value] : experiment.plan.figures({}, 0)) {
    if (column == name) return value;
  }
  return -1;
}

}  // namespace

TEST_CASE("a block of no or a negative number of mini-batches is refused", "[scenarios][errors]") {
  refused_block("strategy.mini_batches=-3",
                "strategy.mini_batches: expected an integer from 1 to 10000000, got \"-3\"");
  refused_block("strategy.mini_batches=0",
                "strategy.mini_batches: expected an integer from 1 to 10000000, got \"0\"");
}

TEST_CASE("an unknown aggregation or form is refused with the list of known ones", "[scenarios][errors]") {
  refused_block(
      "strategy.aggregation=tre",
      "strategy.aggregation: expected one of tree, flat, all_reduce, got \"tre\"; did you mean \"tree\"?");
  refused_bmuf(
      "strategy.form=nesterof",
      "strategy.form: expected one of classical, nesterov, got \"nesterof\"; did you mean \"nesterov\"?");
}

TEST_CASE("block momentum is from 0 to below 1", "[scenarios][errors]") {
  refused_bmuf("strategy.block_momentum=1",
               "strategy.block_momentum: expected a number from 0 to below 1, got \"1\"");
}

TEST_CASE("replicas must divide the workers", "[scenarios][errors]") {
  refused_block("strategy.workers_per_replica=3",
                "strategy.workers_per_replica: 8 workers cannot form replicas of 3; give a divisor");
}

TEST_CASE("a density without top-k is refused", "[scenarios][errors]") {
  refused("seide-1bit", {"strategy.density=0.5"}, "strategy.density: only valid with compression: top_k");
}

TEST_CASE("a block counts all workers' mini-batches, and everyone's workload is one mini-batch",
          "[scenarios]") {
  const Experiment block = shipped_experiment("chen-huo-dnn-bmuf", {"workers=8"});
  CHECK(block.plan.samples_a_step == 8 * 132 * 1024);
  CHECK(block.plan.batch_per_worker == 1024);
  CHECK(own_figure(block, "sweep_minutes") == 0);  // there is a sweep, and nothing was recorded
  double parameters = 0;
  for (const Collective& one : block.plan.collectives) parameters = one.buffer.size.value;
  CHECK(parameters == Approx(4 * 62.945e6).epsilon(1e-4));
}

TEST_CASE("compression times of a GPU are derived, and a flag says so", "[scenarios]") {
  const Experiment seide = shipped_experiment("seide-1bit", {});
  REQUIRE(seide.plan.flags.size() == 1);
  CHECK(seide.plan.flags[0].starts_with("times of compression are derived for k20x from "));
  const Experiment full = shipped_experiment("seide-1bit", {"strategy.compression=none"});
  CHECK(full.plan.flags.empty());
  double bits = 0, floats = 0;
  for (const Collective& one : seide.plan.collectives) bits += one.buffer.size.value;
  for (const Collective& one : full.plan.collectives) floats += one.buffer.size.value;
  CHECK(floats / bits == Approx(31).margin(1));
}

TEST_CASE("measured times of a CPU that compresses for a GPU are used unchanged", "[scenarios]") {
  const auto file =
      std::filesystem::temp_directory_path() / ("stepcast-beside-" + std::to_string(getpid()) + ".yaml");
  std::string text = read_file(STEPCAST_SOURCE_DIR "/models/compression/cpu.yaml");
  const std::string processor = "(1 used)";
  text.replace(text.find(processor), processor.size(), processor + " beside Tesla K20X");
  write_atomically(file, text);
  const Experiment beside = shipped_experiment("seide-1bit", {"compression_times=" + file.string()});
  CHECK(beside.plan.flags.empty());
  std::filesystem::remove(file);
}
