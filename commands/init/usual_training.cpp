#include "commands/init/usual_training.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {
namespace {

/// Whether the first point of the scenario fits into memory; of the last one, if the first cannot be built.
bool fits(const std::filesystem::path& file, const ScenarioStart& start) {
  write_atomically(file, scenario_text(start));
  const Scenario scenario = read_scenario(file, {});
  Library library;
  for (const Point* point : {&scenario.points.front(), &scenario.points.back()}) {
    try {
      return build_experiment(scenario.document, middle_values(scenario, *point), library).plan.fits;
    } catch (const InputError&) {  // such as fewer workers than parts
    }
  }
  return true;  // the error is reported when the file is checked
}

/// Reduces the batch until the scenario fits; false: it does not with a batch of 1.
bool fit_batch(const std::filesystem::path& file, ScenarioStart& start) {
  for (int batch = ScenarioStart{}.batch; batch >= 1; batch /= 2) {
    start.batch = batch;
    if (fits(file, start)) return true;
  }
  return false;
}

}  // namespace

void fit_memory(const std::filesystem::path& file, const Strategy& strategy, Workers workers,
                ScenarioStart& start) {
  bool found = fit_batch(file, start);
  if (!found && find_key(strategy.keys, "recompute") != nullptr) {
    start.recompute = true;
    found = fit_batch(file, start);
  }
  if (!found && start.strategy == "zero") {
    start.example = "{kind: zero, stage: 3}";
    found = fit_batch(file, start);
  }
  const int least = start.least;
  while (!found && workers == Workers::may_grow && 2 * start.least <= start.most) {
    start.least *= 2;
    found = fits(file, start);
  }
  if (!found) start.least = least;
  std::filesystem::remove(file);
}

}  // namespace stepcast
