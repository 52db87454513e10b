#include "commands/init/usual_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// Whether a point of the scenario fits into memory; none if it cannot be built, such as fewer workers than
/// parts.
std::optional<bool> point_fits(const Scenario& scenario, const Point& point, Library& library) {
  try {
    return build_experiment(scenario.document, middle_values(scenario, point), library).plan.fits;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// Whether the first point of the scenario fits into memory; of the last one, if the first cannot be built.
bool fits(const std::filesystem::path& file, const ScenarioStart& start) {
  write_atomically(file, scenario_text(start));
  const Scenario scenario = read_scenario(file, {});
  Library library;
  for (const Point* point : {&scenario.points.front(), &scenario.points.back()}) {
    if (const auto fitting = point_fits(scenario, *point, library)) return *fitting;
  }
  return true;  // the error is reported when the file is checked
}

/// Whether the first point can be built and fits.
bool first_fits(const std::filesystem::path& file, const ScenarioStart& start) {
  write_atomically(file, scenario_text(start));
  const Scenario scenario = read_scenario(file, {});
  Library library;
  return point_fits(scenario, scenario.points.front(), library).value_or(false);
}

/// Reduces the batch until the scenario fits; false: it does not with a batch of 1.
bool fit_batch(const std::filesystem::path& file, ScenarioStart& start) {
  for (int batch = ScenarioStart{}.batch; batch >= 1; batch /= 2) {
    start.batch = batch;
    if (fits(file, start)) return true;
  }
  return false;
}

/// Tries smaller batches, and then the same with recomputation.
bool fit_training(const std::filesystem::path& file, ScenarioStart& start) {
  if (fit_batch(file, start)) return true;
  if (find_key(find_strategy(start.strategy)->keys, "recompute") == nullptr) return false;
  start.recompute = true;
  return fit_batch(file, start);
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
bool fit_divided(const std::filesystem::path& file, MayChange may_change, int devices_per_node,
                 ScenarioStart& start) {
  for (; start.least <= start.most; start.least *= 2) {
    for (int ways = 2; ways <= std::min(8 * devices_per_node, start.least); ways *= 2) {
      divide_samples(ways, devices_per_node, start);
      if (first_fits(file, start)) return true;
    }
    if (!may_change.workers) return false;
  }
  return false;
}

}  // namespace

void fit_memory(const std::filesystem::path& file, MayChange may_change, int devices_per_node,
                ScenarioStart& start) {
  bool found = fit_training(file, start);
  if (!found && (start.strategy == "zero" || may_change.strategy)) {
    partition_all(start);
    found = fit_training(file, start);
  }
  const int least = start.least;
  while (!found && may_change.workers && 2 * start.least <= start.most) {
    start.least *= 2;
    found = fits(file, start);
  }
  if (!found) start.least = least;
  if (!found && may_change.strategy) {
    const ScenarioStart partitioned = start;
    found = fit_divided(file, may_change, devices_per_node, start);
    if (!found) start = partitioned;
  }
  std::filesystem::remove(file);
}

}  // namespace stepcast
