// Files that stepcast wrote and reads again in a later call, and the file that names the hosts of a launch.
// The first byte says which one.
#include <unistd.h>

#include <fstream>

#include "core/yaml.hpp"
#include "forecast/forecast.hpp"
#include "models/network/model.hpp"
#include "report/results/manifest.hpp"
#include "report/results/results.hpp"
#include "runtime/memory/parameters.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "strategies/plan/plan.hpp"
#include "tests/fuzz/input.hpp"

using namespace stepcast;

namespace {

constexpr const char* kScenario = R"(
name: s
description: two points
model: tiny-dnn
trace: derived
platform: ethernet-cpu
batch_per_worker: 8
strategy: {kind: synchronous, all_reduce: automatic}
simulation: {steps: 3, seed: 1}
sweep: {workers: [2, 4]}
)";

const Scenario& scenario() {
  static const MemoryFile file(kScenario);
  static const Scenario one = read_scenario(file.name(), {});
  return one;
}

const Experiment& experiment() {
  static Library library;
  static const Experiment one =
      build_experiment(scenario().document, middle_values(scenario(), scenario().points.front()), library);
  return one;
}

/// The results of a run that finds these simulations finished.
void collect(const Journal& known) {
  ForecastOptions options;
  options.points = {0, 1};
  options.what_if = false;
  const Simulations all = collected(scenario(), known, options);
  for (std::size_t point = 0; point < all.rows.front().size(); ++point)
    over_draws(all, point, "step_seconds");
}

/// A run that goes on from the journal of an earlier one, and one of two shards that have the same journal,
/// as it is and with the checksums that it should have.
void journal(const std::string& text) {
  const MemoryFile damaged(text);
  refuses_or_reads([&] { collect(read_journal(damaged.name())); });
  std::string lines;
  for (const Row& row : read_json_lines(text, "journal").rows) lines += journal_line("", row) + "\n";
  const MemoryFile file(lines);
  refuses_or_reads([&] { collect(read_journal(file.name())); });
  collect(merged_journals({file.name(), file.name()}));
}

void checkpoint(const std::string& text) {
  static const YamlNode network = parse_yaml(
      "name: fuzzed\nsource: s\ninput: [4]\nlayers:\n  - {name: d, kind: dense, units: 2}\n"
      "  - {name: l, kind: softmax_cross_entropy}\n",
      "m.yaml");
  static const Model model = read_model(YamlValue(network, ""));
  const MemoryFile file(text);
  load_checkpoint(file.name(), model);
}

/// What is read is written again without change.
void manifest(const std::string& text) {
  const std::string once = to_json(read_manifest(text, "manifest.json"));
  if (to_json(read_manifest(once, "again.json")) != once)
    throw std::logic_error("written again it differs: " + once);
}

void shard(const std::string& text) {
  static const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("fuzz-shard-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "shard.json", std::ios::binary) << text;
  read_shard_folder(folder);
}

void algorithms(const std::string& text) {
  const MemoryFile file(text);
  read_all_reduces(file.name(), "p", experiment().plan);
}

void hosts(const std::string& text) {
  const MemoryFile file(text);
  read_hosts(file.name());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return read_by_name(data, size, [](std::uint8_t name, const std::string& text) {
    switch (name) {
      case 'j':
        return journal(text);
      case 'c':
        return checkpoint(text);
      case 'm':
        return manifest(text);
      case 's':
        return shard(text);
      case 'a':
        return algorithms(text);
      default:
        return hosts(text);
    }
  });
}
