#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stepcast {

/// Number of code points: the width on a terminal for the scripts that the documents use.
std::size_t display_width(std::string_view text);

/// `text` with control characters replaced by "?", so that a name can neither move the cursor nor end a line.
std::string without_controls(std::string_view text);

/// `text` with every byte that is not part of UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// At most `width` code points, the last three being "..." where something was cut; 0: as it is.
std::string shortened(std::string_view text, std::size_t width);

/// The same, cut in the middle: what tells one name from the next often stands at its end.
std::string shortened_middle(std::string_view text, std::size_t width);

}  // namespace stepcast
