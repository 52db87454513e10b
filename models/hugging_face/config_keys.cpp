#include "models/hugging_face/config_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stepcast {

std::optional<YamlValue> given(const ConfigMap& map, std::string_view key) {
  auto value = key.empty() ? std::nullopt : map.maybe(key);
  if (value && value->is(YamlNode::Kind::nothing)) value.reset();
  return value;
}

std::int64_t config_count(const ConfigMap& map, std::string_view key, std::int64_t most) {
  return map.at(key, "an integer >= 1").integer(1, most);
}

std::int64_t config_count_or(const ConfigMap& map, std::string_view key, std::int64_t most,
                             std::int64_t default_value) {
  const auto value = given(map, key);
  return value ? value->integer(1, most) : default_value;
}

bool config_flag_or(const ConfigMap& map, std::string_view key, bool default_value) {
  const auto value = given(map, key);
  return value ? value->boolean() : default_value;
}

void require_neutral(const ConfigMap& map, const NeutralKey& one) {
  const auto value = given(map, one.key);
  if (value && (!value->is(YamlNode::Kind::scalar) || value->node().text != one.neutral))
    value->expected(fmt::format("{}: no other network is known", one.neutral));
}

double config_number_or(const ConfigMap& map, std::string_view key, double high, double default_value) {
  const auto value = given(map, key);
  return value ? value->number(0, high) : default_value;
}

std::string config_word_or(const ConfigMap& map, std::string_view key, std::string_view default_value) {
  const auto value = given(map, key);
  return value ? value->text() : std::string(default_value);
}

double dropout_rate(const ConfigMap& map, std::string_view key) {
  return config_number_or(map, key, 0.999, 0);
}

void require_architecture(const ConfigMap& map, const std::vector<std::string_view>& names) {
  const auto architectures = given(map, "architectures");
  if (!architectures || architectures->list().empty()) return;
  const YamlValue name = architectures->list().front();
  if (std::ranges::find(names, name.text()) == names.end() || architectures->list().size() > 1)
    name.expected(fmt::format("a network with a loss: {}", fmt::join(names, ", ")));
}

void read_classes(const ConfigMap& map, HuggingFaceConfig& config) {
  const auto labels = given(map, "id2label");
  if (const auto number = given(map, "num_labels")) {
    config.classes = number->integer(1, kMostConfigRows);
  } else if (labels) {
    config.classes = labels->any_map().entries().size();
    if (config.classes == 0) labels->expected("at least one class");
  } else if (config.reads_tokens()) {
    config.classes = 2;  // the library's default
  } else {
    map.at("num_labels", "the number of classes, or id2label");
  }
}

}  // namespace stepcast
