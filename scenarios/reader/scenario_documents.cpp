#include "scenarios/reader/scenario_documents.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"

namespace stepcast {
namespace {

/// NAME of FILE.yaml#NAME; empty for other paths.
std::string name_in(const std::filesystem::path& path) {
  const std::string text = path.string(), file = file_of(path).string();
  return text == file ? "" : text.substr(file.size() + 1);
}

std::filesystem::path named_path(const std::filesystem::path& file, const std::string& name) {
  return file.string() + "#" + name;
}

std::string name_of(const YamlNode& document) {
  const YamlNode* name = document.find("name");
  return name == nullptr ? "" : name->text;
}

std::vector<std::string> names_of(const std::vector<YamlNode>& documents) {
  std::vector<std::string> names;
  for (const YamlNode& document : documents) names.push_back(name_of(document));
  return names;
}

}  // namespace

std::filesystem::path file_of(const std::filesystem::path& path) {
  const std::string text = path.string();
  const auto at = text.rfind(".yaml#");
  return at == std::string::npos ? path : std::filesystem::path(text.substr(0, at + 5));
}

std::vector<std::filesystem::path> scenarios_in(const std::filesystem::path& path) {
  std::error_code error;
  const bool one =
      is_standard_input(path) || !name_in(path).empty() || !std::filesystem::is_regular_file(path, error);
  if (one) return {path};
  const std::vector<std::string> names = names_of(read_yaml_documents(path));
  if (names.size() == 1) return {path};
  std::vector<std::filesystem::path> scenarios;
  for (const std::string& name : names) scenarios.push_back(named_path(path, name));
  return scenarios;
}

YamlNode read_scenario_document(const std::filesystem::path& path) {
  std::vector<YamlNode> all = read_yaml_documents(file_of(path));
  const std::string name = name_in(path);
  if (name.empty() && all.size() == 1) return std::move(all.front());
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return name_of(one) == name; });
  if (!name.empty() && found != all.end()) return std::move(*found);
  const std::vector<std::string> names = names_of(all);
  throw InputError(
      fmt::format("{}: expected # and the name of one of its scenarios after the path, got \"{}\"{} "
                  "(expected one of: {})",
                  printable(file_of(path).string()), printable(name), word_advice(name, names),
                  printable(fmt::format("{}", fmt::join(names, ", ")))));
}

std::filesystem::path path_of_defaults(const YamlValue& name, const std::filesystem::path& path) {
  const std::string text = name.text();
  const auto file = file_of(path), parent = file.parent_path() / text;
  std::error_code error;
  if (file_of(parent).extension() == ".yaml") {
    if (std::filesystem::exists(file_of(parent), error)) return parent;
    name.refuse("there is no file " + file_of(parent).string());
  }
  const std::vector<std::string> here = names_of(read_yaml_documents(file));
  if (std::ranges::find(here, text) == here.end())
    name.expected("the path of a scenario, ending in .yaml, or the name of another scenario in this file");
  return named_path(file, text);
}

std::vector<std::filesystem::path> files_of_defaults(const std::filesystem::path& scenario,
                                                     const std::vector<std::filesystem::path>& defaults) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : defaults) {
    const std::filesystem::path file = file_of(path);
    if (file != file_of(scenario) && std::ranges::find(files, file) == files.end()) files.push_back(file);
  }
  return files;
}

bool same_scenario(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code error;
  return name_in(one) == name_in(other) && std::filesystem::equivalent(file_of(one), file_of(other), error);
}

}  // namespace stepcast
