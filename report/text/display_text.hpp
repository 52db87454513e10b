#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stepcast {

/// `text` as a JSON string with quotes; bytes that are not valid UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

/// The number of code points, which is the width on a terminal for Latin text.
std::size_t display_width(std::string_view text);

/// `text` with control characters replaced by "?", so that it can neither move the cursor nor end a line.
std::string without_controls(std::string_view text);

/// `text` with every byte that is not valid UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// `text` cut to at most `width` code points, of which the last three are "..." if something is cut; 0: not
/// cut.
std::string shortened(std::string_view text, std::size_t width);

/// `text` cut in the middle to at most `width` code points, because the ends of names often differ; 0: not
/// cut.
std::string shortened_middle(std::string_view text, std::size_t width);

}  // namespace stepcast
