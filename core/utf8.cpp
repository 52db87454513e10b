#include "core/utf8.hpp"

#include <cstdint>

namespace stepcast {

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> std::uint8_t { return text[at + i]; };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const std::uint8_t second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool beyond =
      (lead == 0xED && second >= 0xA0) || (lead == 0xF4 && second >= 0x90);  // surrogates, > U+10FFFF
  return overlong || beyond ? 0 : length;
}

}  // namespace stepcast
