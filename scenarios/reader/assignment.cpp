#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {
namespace {

/// One part of a path: a key, or an index into a list.
struct Part {
  std::string key;
  std::optional<std::size_t> index;
};

constexpr std::size_t kMostParts = 64;  // the greatest depth of a YAML file

std::optional<std::vector<Part>> parts_of(const std::string& path) {
  std::vector<Part> parts;
  std::size_t at = 0;
  while (at < path.size()) {
    if (path[at] == '[') {
      const auto end = path.find(']', at);
      if (end == std::string::npos || parts.empty()) return std::nullopt;
      const auto index = parse_integer(path.substr(at + 1, end - at - 1));
      if (!index || *index < 0) return std::nullopt;
      parts.push_back({"", static_cast<std::size_t>(*index)});
      at = end + 1;
    } else {
      if (path[at] == '.' && !parts.empty()) ++at;
      const auto end = std::min(path.find('.', at), path.find('[', at));
      const std::string key = path.substr(at, end == std::string::npos ? end : end - at);
      if (key.empty() || (at > 0 && path[at - 1] == ']')) return std::nullopt;
      parts.push_back({key, std::nullopt});
      at = end == std::string::npos ? path.size() : end;
    }
  }
  if (parts.empty() || parts.size() > kMostParts) return std::nullopt;
  return parts;
}

YamlNode* child(YamlNode& node, const Part& part) {
  if (part.index) return *part.index < node.items.size() ? &node.items[*part.index] : nullptr;
  for (auto& [key, value] : node.entries) {
    if (key.text == part.key) return &value;
  }
  return nullptr;
}

/// Finds the child. A missing key is added with an empty value.
YamlNode* find_or_add_child(YamlNode& node, const Part& part, const Place& place) {
  if (YamlNode* found = child(node, part)) return found;
  if (part.index) return nullptr;
  if (node.kind == YamlNode::Kind::nothing) node.kind = YamlNode::Kind::mapping;
  if (node.kind != YamlNode::Kind::mapping) return nullptr;
  YamlNode key, value;
  key.kind = YamlNode::Kind::scalar;
  key.text = part.key;
  key.place = value.place = place;
  node.entries.emplace_back(std::move(key), std::move(value));
  return &node.entries.back().second;
}

/// Removes the child. @return whether it existed
bool remove_child(YamlNode& node, const Part& part) {
  const YamlNode* found = child(node, part);
  if (found == nullptr) return false;
  if (part.index) {
    node.items.erase(node.items.begin() + (*part.index));
  } else {
    std::erase_if(node.entries, [&](const auto& entry) { return &entry.second == found; });
  }
  return true;
}

[[noreturn]] void refuse_path(const Assignment& assignment) {
  throw InputError(fmt::format("{}: {}: there is no such key", to_string(assignment.value.place),
                               printable(assignment.path)));
}

void place_on_command_line(YamlNode& node) {
  node.place.line = 0;
  for (YamlNode& item : node.items) place_on_command_line(item);
  for (auto& [key, value] : node.entries) {
    key.place.line = 0;
    place_on_command_line(value);
  }
}

}  // namespace

Assignment parse_assignment(const std::string& text) {
  const auto equals = text.find('=');
  const std::string name = "--set " + printable(text);
  if (equals == std::string::npos || equals == 0 || !parts_of(text.substr(0, equals))) {
    throw InputError(name + ": expected KEY=VALUE, such as strategy.bucket=\"25 MiB\"");
  }
  if (text.find_first_not_of(" \t\r\n", equals + 1) == std::string::npos)
    throw InputError(name + ": expected a value after =, got nothing");
  Assignment assignment{text.substr(0, equals), parse_yaml(text.substr(equals + 1), name)};
  place_on_command_line(assignment.value);
  return assignment;
}

Assignment removal(std::string path) {
  static const auto by_program = std::make_shared<const std::string>("set by stepcast");
  Assignment made{std::move(path), {}};
  made.value.place.file = by_program;
  return made;
}

Assignment assignment(std::string path, std::string value) {
  Assignment made = removal(std::move(path));
  made.value.kind = YamlNode::Kind::scalar;
  made.value.text = std::move(value);
  return made;
}

Assignment assignment(std::string path, const std::vector<Assignment>& entries) {
  Assignment made = removal(std::move(path));
  made.value.kind = YamlNode::Kind::mapping;
  for (const Assignment& entry : entries) assign(made.value, entry);
  return made;
}

Assignment assignment(std::string path, std::int64_t value) {
  return assignment(std::move(path), std::to_string(value));
}

Assignment assignment(std::string path, bool value) {
  return assignment(std::move(path), std::string(value ? "true" : "false"));
}

Assignment assignment(std::string path, const char* value) {
  return assignment(std::move(path), std::string(value));
}

std::vector<Assignment> parse_assignments(const std::vector<std::string>& texts) {
  std::vector<Assignment> all;
  for (const std::string& text : texts) all.push_back(parse_assignment(text));
  return all;
}

void assign(YamlNode& root, const Assignment& assignment) {
  const auto parts = parts_of(assignment.path);
  YamlNode* node = parts ? &root : nullptr;
  const bool removes = assignment.value.kind == YamlNode::Kind::nothing;
  const std::size_t created_parts = parts && removes ? parts->size() - 1 : parts ? parts->size() : 0;
  for (std::size_t i = 0; node != nullptr && i < created_parts; ++i) {
    node =
        removes ? child(*node, (*parts)[i]) : find_or_add_child(*node, (*parts)[i], assignment.value.place);
  }
  if (node == nullptr || (removes && !remove_child(*node, parts->back()))) refuse_path(assignment);
  if (!removes) *node = assignment.value;
}

const YamlNode* find_path(const YamlNode& root, const std::string& path) {
  const auto parts = parts_of(path);
  if (!parts) return nullptr;
  const YamlNode* node = &root;
  for (const Part& part : *parts) {
    node = child(const_cast<YamlNode&>(*node), part);
    if (node == nullptr) return nullptr;
  }
  return node;
}

}  // namespace stepcast
