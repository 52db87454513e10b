#include "scenarios/experiment/usual_kernels.hpp"

#include <fmt/format.h>

#include <optional>

#include "core/error.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/mesh/mesh.hpp"
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

/// bf16 for a transformer, else f16, which PyTorch's autocast has by default; of those that the device has,
/// or f32.
std::string half_precision(const Model& model, const Device& device) {
  for (const char* precision : {is_transformer(model) ? "bf16" : "f16", "f16", "bf16"}) {
    if (device_in(device, precision)) return precision;
  }
  return "f32";
}

}  // namespace

std::string usual_precision(const Model& model, const Device& device) {
  if (!is_transformer(model) && device_in(device, "tf32")) return "tf32";
  return half_precision(model, device);
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

/// Sets the keys of `kernels` that the document does not give.
void assign_kernels(YamlNode& document, const std::string& text) {
  for (const auto& [key, value] : parse_yaml(text, "default kernels").entries) {
    const std::string path = "kernels." + key.text;
    if (find_path(document, path) == nullptr) assign(document, {path, value});
  }
}

}  // namespace

bool takes_autocast(const YamlNode& strategy) {
  const YamlNode *kind = strategy.find("kind"), *like = strategy.find("like");
  return kind != nullptr && kind->text == kPlainReplicas &&
         (like == nullptr || like->text == "pytorch-ddp") && !names_mesh(strategy);
}

void apply_usual_kernels(YamlNode& document, const Model& model, const Device& device) {
  const YamlNode* trace = document.find("trace");
  if (trace == nullptr || trace->text != "derived") return;
  if (find_path(document, "kernels.precision") != nullptr ||
      find_path(document, "strategy.compression") != nullptr)
    return;
  const YamlNode* named = find_path(document, "strategy.precision");
  if (named != nullptr && named->text != "mixed") return;
  const bool mixed = named != nullptr || is_transformer(model);
  const std::string precision = mixed ? half_precision(model, device) : usual_precision(model, device);
  if (mixed ? precision == "f32" || !takes_precision(document) : precision != "tf32") return;
  assign_kernels(document, kernels_text(model, device, precision));
  if (!mixed) return;
  if (named == nullptr) assign(document, assignment("strategy.precision", "mixed"));
  if (!is_transformer(model) || !takes_autocast(*document.find("strategy"))) return;
  assign_kernels(document, "{autocast: true}");
  if (find_path(document, "strategy.fp32_gradients") == nullptr)
    assign(document, assignment("strategy.fp32_gradients", "true"));
}

}  // namespace stepcast
