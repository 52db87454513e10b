#include "scenarios/experiment/usual_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

bool is_transformer(const Model& model) {
  return has_layers(model, LayerKind::attention);
}

/// The device with a precision; none if it does not have it.
std::optional<Device> device_in(const Device& device, const std::string& precision) {
  KernelChoice choice;
  choice.precision = *precision_words().find(precision);
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

bool takes_precision(const YamlNode& document) {
  const YamlNode* kind = find_path(document, "strategy.kind");
  const Strategy* strategy = kind == nullptr ? nullptr : find_strategy(kind->text);
  return strategy != nullptr && find_key(strategy->keys, "precision") != nullptr;
}

}  // namespace

void apply_usual_kernels(YamlNode& document, const Model& model, const Device& device) {
  const YamlNode* trace = document.find("trace");
  if (trace == nullptr || trace->text != "derived") return;
  for (const char* key : {"kernels", "strategy.precision", "strategy.compression"}) {
    if (find_path(document, key) != nullptr) return;
  }
  const std::string precision = usual_precision(model, device);
  const bool mixed = is_transformer(model);
  if (mixed ? precision == "f32" || !takes_precision(document) : precision != "tf32") return;
  assign(document, {"kernels", parse_yaml(kernels_text(model, device, precision), "default kernels")});
  if (mixed) assign(document, assignment("strategy.precision", "mixed"));
}

}  // namespace stepcast
