#include "core/yaml_text.hpp"

#include <fmt/format.h>

namespace stepcast {
namespace {

std::string escaped(char c) {
  if (c == '"' || c == '\\') return std::string("\\") + c;
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  return (c >= 0 && c < ' ') || c == 0x7f ? fmt::format("\\x{:02x}", int{c}) : std::string(1, c);
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) result += escaped(c);
  return result + "\"";
}

std::string numbers(const std::vector<double>& values) {
  std::string result = "[";
  for (const double value : values) result += fmt::format("{}{:.6g}", result.size() > 1 ? ", " : "", value);
  return result + "]";
}

}  // namespace stepcast
