#include <fmt/format.h>

#include "core/yaml.hpp"

namespace stepcast {

YamlNode::YamlNode() = default;
YamlNode::YamlNode(const YamlNode& other) = default;
YamlNode::YamlNode(YamlNode&& other) noexcept = default;
YamlNode& YamlNode::operator=(const YamlNode& other) = default;
YamlNode& YamlNode::operator=(YamlNode&& other) noexcept = default;
YamlNode::~YamlNode() = default;

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.text == key) return &value;
  }
  return nullptr;
}

std::string to_string(const Place& place) {
  if (!place.file) return "?";
  return place.line == 0 ? *place.file : fmt::format("{}:{}:{}", *place.file, place.line, place.column);
}

}  // namespace stepcast
