#include "commands/init/usual_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {
namespace {

bool is_transformer(const Model& model) {
  return std::ranges::any_of(model.layers,
                             [](const Layer& layer) { return layer.kind == LayerKind::attention; });
}

/// The device with a precision; none if it does not have it.
std::optional<Device> device_in(const Device& device, const std::string& precision) {
  const auto found = std::ranges::find(precision_names(), precision);
  KernelChoice choice;
  choice.precision = static_cast<KernelChoice::Precision>(found - precision_names().begin());
  try {
    return with_kernels(device, choice);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

std::string usual_precision(const Model& model, const Device& device) {
  for (const char* precision : {is_transformer(model) ? "bf16" : "tf32", "f16", "bf16"}) {
    if (device_in(device, precision)) return precision;
  }
  return "f32";
}

std::string kernels_text(const Model& model, const Device& device, const std::string& precision) {
  if (!device.kernels) return precision == "f32" ? "" : fmt::format("{{precision: {}}}", precision);
  if (!is_transformer(model)) return fmt::format("{{precision: {}}}", precision);
  const auto chosen = device_in(device, precision);
  const bool flash = chosen && chosen->kernels->flash > 0;
  return fmt::format("{{precision: {}, attention: {}, optimizer: adamw, update: foreach}}", precision,
                     flash ? "flash" : "eager");
}

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

void fit_memory(const std::filesystem::path& file, const Strategy& strategy, ScenarioStart& start) {
  bool found = fit_batch(file, start);
  const bool recomputes =
      std::ranges::any_of(strategy.keys, [](const Key& key) { return key.name == "recompute"; });
  if (!found && recomputes) {
    start.recompute = true;
    found = fit_batch(file, start);
  }
  if (!found && start.strategy == "zero") {
    start.example = "{kind: zero, stage: 3}";
    fit_batch(file, start);
  }
  std::filesystem::remove(file);
}

}  // namespace stepcast
