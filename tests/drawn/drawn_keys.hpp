#pragma once

#include <string>

#include "core/keys.hpp"
#include "tests/drawn/draws.hpp"

namespace stepcast::drawn {

/// Keys with drawn values as YAML text in one line: those that are required, and some others.
/// @param kind    value of the key `kind`; empty if the mapping has none
/// @param layers  names of the network's layers
std::string drawn_keys(const Keys& keys, const std::string& kind, const std::vector<std::string>& layers,
                       Draws& draws);

}  // namespace stepcast::drawn
