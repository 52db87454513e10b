#include "scenarios/reader/defaults.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast {
namespace {

constexpr std::size_t kMostFiles = 8;

bool other_kind(const YamlNode& base, const YamlNode& over) {
  const YamlNode *of_base = base.find("kind"), *of_over = over.find("kind");
  return of_base != nullptr && of_over != nullptr && of_base->text != of_over->text;
}

/// Puts the entries of `over` into `base`.
void merge(YamlNode& base, YamlNode over) {
  base.place = over.place;  // a missing key is missed in the file that inherits
  for (auto& [key, value] : over.entries) {
    const auto found = std::ranges::find_if(
        base.entries, [&key = key](const auto& entry) { return entry.first.text == key.text; });
    const bool removed = value.kind == YamlNode::Kind::nothing;
    if (found == base.entries.end()) {
      base.entries.emplace_back(std::move(key), std::move(value));
    } else if (removed) {
      base.entries.erase(found);
    } else if (key.text != "sweep" && value.kind == YamlNode::Kind::mapping &&
               found->second.kind == YamlNode::Kind::mapping && !other_kind(found->second, value)) {
      merge(found->second, std::move(value));
    } else {
      found->first = std::move(key);
      found->second = std::move(value);
    }
  }
}

YamlNode read_file(const std::filesystem::path& file, std::vector<std::filesystem::path>& files) {
  YamlNode root = read_yaml(file);
  if (root.kind != YamlNode::Kind::mapping) YamlValue(root, "").expected("a scenario, a mapping");
  files.push_back(file);
  const YamlNode* named = root.find("defaults");
  if (named == nullptr) return root;
  const YamlValue name(*named, "defaults");
  if (!name.text().ends_with(".yaml")) name.expected("the path of a scenario, ending in .yaml");
  const auto parent = file.parent_path() / name.text();
  std::error_code error;
  if (!std::filesystem::exists(parent, error)) name.refuse("there is no file " + parent.string());
  const auto is_parent = [&](const auto& known) { return std::filesystem::equivalent(known, parent, error); };
  if (std::ranges::any_of(files, is_parent))
    name.refuse(fmt::format("{} would inherit from itself", parent.string()));
  if (files.size() >= kMostFiles)
    name.refuse(fmt::format("more than {} files inherit from one another", kMostFiles));
  std::erase_if(root.entries, [](const auto& entry) { return entry.first.text == "defaults"; });
  YamlNode base = read_file(parent, files);
  std::erase_if(base.entries,
                [](const auto& entry) { return entry.first.text == "name"; });  // of the other's results
  merge(base, std::move(root));
  return base;
}

}  // namespace

InheritedScenario read_with_defaults(const std::filesystem::path& file) {
  InheritedScenario scenario;
  scenario.root = read_file(file, scenario.defaults);
  scenario.defaults.erase(scenario.defaults.begin());  // the file itself
  return scenario;
}

}  // namespace stepcast
