#pragma once

#include <string>

#include "tests/drawn/draws.hpp"

namespace stepcast::drawn {

/// A made-up platform with at least `devices` devices, as YAML text in one line. Its kind of node, fabric,
/// NICs, message costs, storage and communication library are drawn.
std::string drawn_platform(int devices, Draws& draws);

}  // namespace stepcast::drawn
