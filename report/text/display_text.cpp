#include "report/text/display_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stepcast {

std::string json_text(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

bool starts_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

/// The number of bytes of the first `count` code points.
std::size_t byte_after(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  while (end < text.size() && (count > 0 || !starts_code_point(text[end]))) {
    count -= starts_code_point(text[end++]) ? 1 : 0;
  }
  return end;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string without_controls(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool c1 =
        byte == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F are control characters too
    out += byte < 0x20 || byte == 0x7F || c1 ? '?' : text[i];
    i += c1 ? 1 : 0;
  }
  return out;
}

std::string valid_utf8(std::string_view text) {
  return nlohmann::json::parse(json_text(text)).get<std::string>();
}

std::string shortened(std::string_view text, std::size_t width) {
  if (width == 0 || display_width(text) <= width) return std::string(text);
  const std::string_view dots = width > 3 ? "..." : "";
  return std::string(text.substr(0, byte_after(text, width - dots.size()))) + std::string(dots);
}

std::string shortened_middle(std::string_view text, std::size_t width) {
  const std::size_t full_width = display_width(text);
  if (full_width <= width || width < 5) return shortened(text, width);
  const std::size_t tail = (width - 3) / 2;
  const std::size_t head = width - 3 - tail;
  return std::string(text.substr(0, byte_after(text, head))) + "..." +
         std::string(text.substr(byte_after(text, full_width - tail)));
}

}  // namespace stepcast
