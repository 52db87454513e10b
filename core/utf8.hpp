#pragma once

#include <cstddef>
#include <string_view>

namespace stepcast {

/// Bytes in the UTF-8 sequence that starts at `text[at]`, or 0 if it is not valid (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t at);

}  // namespace stepcast
