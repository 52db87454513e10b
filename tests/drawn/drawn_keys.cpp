#include "tests/drawn/drawn_keys.hpp"

#include <algorithm>
#include <map>

#include "core/text.hpp"

namespace stepcast::drawn {
namespace {

/// Values of keys whose table does not say enough: names of files, and ranges whose cases would be refused,
/// unlikely or endless.
const std::map<std::string_view, std::vector<std::string>>& special_values() {
  static const std::map<std::string_view, std::vector<std::string>> values{
      {"like",
       {"pytorch-ddp", "pytorch-fsdp", "horovod", "chainermn", "deepspeed", "lbann", "megatron",
        "mxnet-device", "tensorflow-ps", "tensorflow-replicated"}},
      {"apply_trace", {"small-cnn-b64-cpu"}},
      {"part_trace", {}},  // a trace of exactly this part
      {"split", {"2", "4", "[2, 2]", "[2, 1]"}},
      {"bucket", {"tensor", "model", "25 MiB", "64 KiB", "512 KiB", "2 MiB"}},
      {"tasks", {"8", "16", "64", "128"}},
      {"experts", {"2", "4", "8", "16"}},
      {"density", {"0.001", "0.01", "0.2"}},
      {"validate_every", {"2", "7"}},
      {"validation_time", {"100 us", "3 ms"}},
      {"samples", {"4", "32"}}};
  return values;
}

std::string drawn_integer(const Key& key, Draws& draws) {
  const NumberRange range = number_range(key).value_or(NumberRange{});
  const double low = std::isfinite(range.low) ? range.low : 0;
  const double grown =
      low >= 1 ? low * draws.one_of({1, 2, 2, 3, 4, 8}) : low + draws.one_of({0, 1, 1, 2, 4});
  return std::to_string(static_cast<std::int64_t>(std::min(grown, range.high)));
}

/// Around the default value, or from the least value up.
std::string drawn_number(const Key& key, Draws& draws) {
  const NumberRange range = number_range(key).value_or(NumberRange{});
  const auto usual = parse_number(key.default_value);
  const double low = std::isfinite(range.low) ? range.low : 0;
  const double number =
      usual && *usual > 0 ? *usual * draws.log_between(0.3, 3) : low + draws.between(0, 0.9);
  return short_text(std::clamp(number, low, range.high));
}

/// A value of one of the key's types; empty: no value of this type can be drawn.
std::string drawn_value(const Key& key, std::string_view type, const std::vector<std::string>& layers,
                        Draws& draws) {
  if (type.starts_with("boolean")) return draws.one_of({"true", "false"});
  if (type.starts_with("integer")) return drawn_integer(key, draws);
  if (type.starts_with("number")) return drawn_number(key, draws);
  if (type.starts_with("time")) return short_text(draws.log_between(1, 2000)) + " us";
  if (type.starts_with("bytes")) return short_text(draws.log_between(4, 16384)) + " KiB";
  if (type.starts_with("bandwidth")) return short_text(draws.log_between(0.5, 100)) + " GB/s";
  if (type == "name of a layer") return draws.one_of(layers);
  if (type == "list of layer names") return "[" + draws.one_of(layers) + "]";
  if (type.starts_with("mapping") && key.inside != nullptr)
    return "{" + drawn_keys(key.inside(), "", layers, draws) + "}";
  const auto words = allowed_words(key);
  return type == "name" && !words.empty() ? draws.one_of(words) : "";
}

std::string drawn_value(const Key& key, const std::vector<std::string>& layers, Draws& draws) {
  const auto special = special_values().find(key.name);
  if (special != special_values().end()) return special->second.empty() ? "" : draws.one_of(special->second);
  return drawn_value(key, draws.one_of(types_of(key)), layers, draws);
}

/// Whether a key is required beside the keys that are there: "required with validate_every".
bool is_required(const Key& key, const std::string& text) {
  constexpr std::string_view kWith = "required with ";
  if (key.default_value.starts_with(kWith))
    return text.find(key.default_value.substr(kWith.size())) != std::string::npos;
  return key.default_value.starts_with("required");
}

}  // namespace

std::string drawn_keys(const Keys& keys, const std::string& kind, const std::vector<std::string>& layers,
                       Draws& draws) {
  std::string text = kind.empty() ? "" : "kind: " + kind;
  const double share = draws.one_of({0, 2, 4, 8, 16}) / static_cast<double>(keys.size());
  for (const Key& key : keys) {
    if (key.name == "kind" && !kind.empty()) continue;
    const bool optional = !key.default_value.starts_with("required");
    if (!is_required(key, text) && !(optional && draws.chance(share))) continue;
    const std::string value = drawn_value(key, layers, draws);
    if (!value.empty()) text += joined({text.empty() ? "" : ", ", std::string(key.name), ": ", value});
  }
  return text;
}

}  // namespace stepcast::drawn
