#pragma once

#include <string>
#include <string_view>

namespace stepcast {

/// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

}  // namespace stepcast
