#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

/// The word at the least edit distance (inserted, deleted or changed letters) from `text`, for "did you
/// mean". Words that differ in more than a third of the letters do not count. If none is left, the first word
/// that begins with `text`, which must have three letters at least. Empty if there is none either.
std::string nearest_word(std::string_view text, const std::vector<std::string>& words);

}  // namespace stepcast
