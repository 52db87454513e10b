#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

/// Place of a byte that no text file may have, and the reason.
struct BadByte {
  std::size_t offset;
  std::string reason;
};

/// Finds the first byte that is not part of valid UTF-8 text, or is a control character other than tab and
/// line ends. Empty if there is none.
std::optional<BadByte> first_bad_byte(std::string_view text);

/// Shortens the text to one printable line of at most 60 bytes, for error messages. Control characters and
/// line ends become spaces.
std::string printable(std::string_view text);

/// The word at the least edit distance (inserted, deleted or changed letters) from `text`, for "did you
/// mean". Words that differ in more than a third of the letters do not count. If none is left, the first word
/// that begins with `text`, which must have three letters at least. Empty if there is none either.
std::string nearest_word(std::string_view text, const std::vector<std::string>& words);

}  // namespace stepcast
