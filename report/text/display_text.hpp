#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/units.hpp"

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

/// Text with three significant digits and an SI prefix: human(12345, "B/s") is "12.3 kB/s", human(12345, "")
/// is "12.3 k". Values below 1 get no prefix, except times. A number that is not finite is "-".
std::string human(double value, std::string_view unit);

/// Text such as "1.23 us", "45.6 ms", "7.89 s", "12.3 min", "4.56 h" or "7.89 d".
std::string human(Seconds time);

/// Text with a binary prefix, such as "15.9 GiB".
std::string human(Bytes bytes);

/// Plain decimal text with `decimals` digits after the point; never "-0".
std::string fixed(double value, int decimals);

}  // namespace stepcast
