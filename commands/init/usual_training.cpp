#include "commands/init/usual_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/scenario.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// Where the scenario is to stand, and the files that all trials read.
struct Trials {
  const std::filesystem::path& file;
  Library& library;
};

enum class Points { first, first_or_last };

/// Whether the first point of the scenario fits into memory, or the last if the first cannot be built, such
/// as with fewer workers than parts; none if it cannot be built.
std::optional<bool> fits(const Trials& trials, const ScenarioStart& start, Points points) {
  const Scenario scenario =
      read_scenario_tree(parse_yaml_file(scenario_text(start), trials.file.string()), trials.file);
  for (const Point* point : {&scenario.points.front(), &scenario.points.back()}) {
    try {
      return build_experiment(scenario.document, middle_values(scenario, *point), trials.library).plan.fits;
    } catch (const InputError&) {
      if (points == Points::first) break;
    }
  }
  return std::nullopt;
}

/// The error of a scenario that cannot be built is reported when its file is checked.
bool may_fit(const Trials& trials, const ScenarioStart& start) {
  return fits(trials, start, Points::first_or_last).value_or(true);
}

/// Reduces the batch until the scenario fits; false: it does not with a batch of 1.
bool fit_batch(const Trials& trials, ScenarioStart& start) {
  for (int batch = ScenarioStart{}.batch; batch >= 1; batch /= 2) {
    start.batch = batch;
    if (may_fit(trials, start)) return true;
  }
  return false;
}

/// Tries smaller batches, and then the same with recomputation.
bool fit_training(const Trials& trials, ScenarioStart& start) {
  if (fit_batch(trials, start)) return true;
  if (find_key(find_strategy(start.strategy)->keys, "recompute") == nullptr) return false;
  start.recompute = true;
  return fit_batch(trials, start);
}

/// Partitions parameters, gradients and optimizer state, as PyTorch's FSDP does.
void partition_all(ScenarioStart& start) {
  start.strategy = "zero";
  start.example = "{kind: zero, stage: 3}";
  start.recompute = false;
  start.takes_precision = true;
}

/// Divides layers and the tokens between them among the devices of a node, as Megatron does, sequences among
/// several nodes if there are more ways, and partitions parameters as FSDP does.
void divide_samples(int ways, int devices_per_node, ScenarioStart& start) {
  int tensor = ways;
  while (tensor > devices_per_node) tensor /= 2;  // few networks have heads for 6 devices
  const int context = ways / tensor;
  const std::string sequences = context > 1 ? fmt::format(", context: {}", context) : "";
  start.strategy = kPlainReplicas;
  start.example =
      fmt::format("{{kind: {}, mesh: {{tensor: {}{}}}, sequence_parallel: true, shard: parameters}}",
                  kPlainReplicas, tensor, sequences);
  start.recompute = true;
  start.takes_precision = true;
}

/// Tries more and more workers, and for each number more and more devices that share a sample, until the
/// first point fits. False: it never does.
bool fit_divided(const Trials& trials, MayChange may_change, int devices_per_node, ScenarioStart& start) {
  for (; start.least <= start.most; start.least *= 2) {
    for (int ways = 2; ways <= std::min(8 * devices_per_node, start.least); ways *= 2) {
      divide_samples(ways, devices_per_node, start);
      if (fits(trials, start, Points::first).value_or(false)) return true;
    }
    if (!may_change.workers) return false;
  }
  return false;
}

}  // namespace

void fit_memory(const std::filesystem::path& file, Library& library, MayChange may_change,
                int devices_per_node, ScenarioStart& start) {
  const Trials trials{file, library};
  bool found = fit_training(trials, start);
  if (!found && (start.strategy == "zero" || may_change.strategy)) {
    partition_all(start);
    found = fit_training(trials, start);
  }
  const int least = start.least;
  while (!found && may_change.workers && 2 * start.least <= start.most) {
    start.least *= 2;
    found = may_fit(trials, start);
  }
  if (!found) start.least = least;
  if (!found && may_change.strategy) {
    const ScenarioStart partitioned = start;
    found = fit_divided(trials, may_change, devices_per_node, start);
    if (!found) start = partitioned;
  }
}

}  // namespace stepcast
