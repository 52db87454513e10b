#pragma once

#include <cstdint>
#include <vector>

#include "core/words.hpp"
#include "platforms/platform.hpp"

namespace stepcast {

/// The rule that assigns workers to devices. packed: node after node; spread: one worker per node in turn;
/// random: random devices.
enum class PlacementRule { packed, spread, random };
const Words<PlacementRule>& placement_words();

/// The device of each worker. The workers of a node have consecutive ranks.
std::vector<int> place_workers(const Platform& platform, int workers, PlacementRule rule, std::uint64_t seed);

}  // namespace stepcast
