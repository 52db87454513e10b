#include "tests/drawn/yaml_text.hpp"

namespace stepcast::drawn {
namespace {

std::string scalar_text(const YamlNode& node) {
  const bool plain = !node.quoted && node.text.find_first_of(",[]{}:#&*!|>'\"%@?") == std::string::npos;
  return plain ? node.text : '"' + node.text + '"';
}

std::string flow_text(const YamlNode& node) {
  std::string text;
  switch (node.kind) {
    case YamlNode::Kind::nothing:
      return "null";
    case YamlNode::Kind::scalar:
      return scalar_text(node);
    case YamlNode::Kind::sequence:
      for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + flow_text(item);
      return '[' + text + ']';
    case YamlNode::Kind::mapping:
      for (const auto& [key, value] : node.entries)
        text += (text.empty() ? "" : ", ") + scalar_text(key) + ": " + flow_text(value);
      return '{' + text + '}';
  }
  return text;
}

}  // namespace

std::string yaml_text(const YamlNode& mapping) {
  std::string text;
  for (const auto& [key, value] : mapping.entries) text += scalar_text(key) + ": " + flow_text(value) + '\n';
  return text;
}

}  // namespace stepcast::drawn
