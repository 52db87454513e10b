#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "core/yaml.hpp"
#include "core/yaml_tree.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

void check_bytes(std::string_view text, const Place& place) {
  if (text.size() > kMaxFileBytes) {
    throw InputError(fmt::format("{}: file of {} bytes, at most 1 MiB is read", *place.file, text.size()));
  }
  const auto bad = first_bad_byte(text);
  if (!bad) return;
  Place at = place;
  at.line = 1;
  at.column = 1;
  for (const char c : text.substr(0, bad->offset)) {
    at.column = c == '\n' ? 1 : at.column + 1;
    at.line += c == '\n';
  }
  throw InputError(fmt::format("{}: {}", to_string(at), bad->reason));
}

}  // namespace

YamlNode parse_yaml(std::string_view text, const std::string& file_name) {
  Place place{std::make_shared<const std::string>(file_name), 1, 1};
  check_bytes(text, place);
  // Cutting the trailing white space makes yaml-cpp notice a quote that is never closed.
  const auto last = text.find_last_not_of(" \t\r\n");
  std::istringstream stream{std::string(text.substr(0, last == std::string_view::npos ? 0 : last + 1))};
  TreeBuilder tree(place.file);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(tree)) throw InputError(fmt::format("{}: the file is empty", file_name));
    TreeBuilder rest(place.file);
    if (parser.HandleNextDocument(rest)) {
      const Place& where = rest.root.place.line > 0 ? rest.root.place : place;
      throw InputError(
          fmt::format("{}: text after the end of the document (one document a file)", to_string(where)));
    }
  } catch (const YAML::Exception& error) {
    place.line = error.mark.line + 1;
    place.column = error.mark.column + 1;
    throw InputError(fmt::format("{}: invalid YAML: {}", to_string(place), error.msg));
  }
  return std::move(tree.root);
}

YamlNode read_yaml(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw InputError(file.string() + ": is a folder, not a file");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    const std::string why = errno != 0 ? ": " + std::generic_category().message(errno) : "";
    throw InputError(file.string() + ": cannot be read" + why);
  }
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMaxFileBytes) throw InputError(file.string() + ": larger than 1 MiB");
  return parse_yaml(text, file.string());
}

}  // namespace stepcast
