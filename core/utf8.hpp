#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepcast {

struct BadByte {
  std::size_t offset;
  std::string reason;
};

/// First byte that is not part of valid UTF-8 text, or is a control character other than tab and line ends.
std::optional<BadByte> first_bad_byte(std::string_view text);

/// The text as one printable line of at most 60 bytes, for error messages.
std::string printable(std::string_view text);

}  // namespace stepcast
