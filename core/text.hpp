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

/// The word that a user probably meant by `text`, for "did you mean": one that begins with `text`, else one
/// that contains it, if `text` has three letters at least; else one that differs in at most a third of the
/// letters, or in two. Among several, the word at the least edit distance (inserted, deleted or changed
/// letters). Capital and small letters count as equal, and PyTorch's Linear counts as `dense`. Empty if there
/// is none.
std::string nearest_word(std::string_view text, const std::vector<std::string>& words);

}  // namespace stepcast
