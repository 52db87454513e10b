#include "scenarios/reader/data_files.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "core/nearest.hpp"
#include "models/loader.hpp"

namespace stepcast {

std::filesystem::path data_folder() {
  const char* set = std::getenv("STEPCAST_DATA");
  return set != nullptr && *set != '\0' ? set : STEPCAST_DATA_DIR;
}

std::filesystem::path data_file(const YamlValue& name, const std::string& folder) {
  const std::string text = name.text();
  std::error_code error;
  if (text.ends_with(".yaml")) {
    const Place& place = name.node().place;
    const bool typed = place.line == 0;  // on the command line
    const auto beside =
        typed ? std::filesystem::path(text) : std::filesystem::path(*place.file).parent_path() / text;
    if (std::filesystem::exists(beside, error)) return beside;
    name.refuse(fmt::format("there is no file {}", beside.string()));
  }
  const auto where = data_folder() / folder;
  const auto file = model_file(where, text);
  if (text.find('/') == std::string::npos && std::filesystem::exists(file, error)) return file;
  const std::string nearest = nearest_word(text, names_in(where));
  name.expected(fmt::format("a name in {}/ or a path ending in .yaml{}", folder,
                            nearest.empty() ? "" : fmt::format(" (such as \"{}\")", nearest)));
}

YamlNode command_line_name(const std::string& name) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = name;
  node.place.file = std::make_shared<const std::string>("command line");
  return node;
}

}  // namespace stepcast
