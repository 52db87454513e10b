#include "core/yaml_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.hpp"

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
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) result += "\uFFFD";  // the replacement character
    if (length == 1) result += escaped(text[at]);
    if (length > 1) result += text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return result + "\"";
}

std::string numbers(const std::vector<double>& values) {
  std::string result = "[";
  for (const double value : values) result += fmt::format("{}{:.6g}", result.size() > 1 ? ", " : "", value);
  return result + "]";
}

}  // namespace stepcast
