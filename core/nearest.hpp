#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

/// The word that differs from `text` by the fewest inserted, deleted or changed letters; empty if more than a
/// third of it differs. If there is none, the first that begins with it (three letters at least).
std::string nearest_word(std::string_view text, const std::vector<std::string>& words);

}  // namespace stepcast
