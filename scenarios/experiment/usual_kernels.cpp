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

/// bf16 for a transformer, else f16, which PyTorch's autocast has by default; of those that the device has,
/// or f32.
std::string half_precision(const Model& model, const Device& device, int year) {
  const bool bf16_first = is_transformer(model) && year >= 2021;
  for (const char* precision : {bf16_first ? "bf16" : "f16", "f16", "bf16"}) {
    if (year >= 2018 && device_in(device, precision)) return precision;
  }
  return "f32";
}

/// The attention of PyTorch of a year, on a device that has flash kernels.
const char* attention_of(int year) {
  return year < 2023 ? "eager" : year == 2023 ? "flash_1" : "flash";
}

}  // namespace

int year_of(const YamlNode& document) {
  const YamlNode* year = document.find("year");
  return year == nullptr ? kLastYear
                         : static_cast<int>(YamlValue(*year, "year").integer(kFirstYear, kLastYear));
}

std::string usual_precision(const Model& model, const Device& device, int year) {
  if (!is_transformer(model) && year >= 2020 && device_in(device, "tf32")) return "tf32";
  return half_precision(model, device, year);
}

std::string kernels_text(const Model& model, const Device& device, const std::string& precision, int year) {
  if (!device.kernels) return precision == "f32" ? "" : fmt::format("{{precision: {}}}", precision);
  if (!is_transformer(model)) return fmt::format("{{precision: {}}}", precision);
  const auto chosen = device_in(device, precision);
  const bool flash = chosen && chosen->kernels->flash > 0;
  return fmt::format("{{precision: {}, attention: {}, optimizer: adamw, update: {}}}", precision,
                     flash ? attention_of(year) : "eager", year < 2023 ? "for_loop" : "foreach");
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

/// True if every worker has the whole network: no axis of a mesh but data, nothing partitioned.
bool is_replicated(const YamlNode& strategy) {
  const YamlNode *mesh = strategy.find("mesh"), *shard = strategy.find("shard");
  const auto one = [](const auto& axis) { return axis.first.text == "data" || axis.second.text == "1"; };
  return (mesh == nullptr || std::ranges::all_of(mesh->entries, one)) &&
         (shard == nullptr || shard->text == "none");
}

}  // namespace

bool takes_autocast(const YamlNode& strategy) {
  const YamlNode *kind = strategy.find("kind"), *like = strategy.find("like");
  return kind != nullptr && kind->text == kPlainReplicas &&
         (like == nullptr || like->text == "pytorch-ddp") && is_replicated(strategy);
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
  const int year = year_of(document);
  const std::string precision =
      mixed ? half_precision(model, device, year) : usual_precision(model, device, year);
  if (mixed ? precision == "f32" || !takes_precision(document) : precision != "tf32") return;
  assign_kernels(document, kernels_text(model, device, precision, year));
  if (!mixed) return;
  if (named == nullptr) assign(document, assignment("strategy.precision", "mixed"));
  if (!is_transformer(model) || !takes_autocast(*document.find("strategy"))) return;
  assign_kernels(document, "{autocast: true}");
  if (find_path(document, "strategy.fp32_gradients") == nullptr)
    assign(document, assignment("strategy.fp32_gradients", "true"));
}

}  // namespace stepcast
