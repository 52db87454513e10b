#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace stepcast {

/// packed: node after node; spread: one worker a node, round by round; random: any devices.
enum class PlacementRule { packed, spread, random };
const std::vector<std::string>& placement_names();  ///< in the order of PlacementRule

/// Device of each worker, workers of a node side by side in rank order.
std::vector<int> place_workers(const Platform& platform, int workers, PlacementRule rule, std::uint64_t seed);

/// Ranks a node where every node in use holds as many consecutive ranks, else 1.
int even_ranks_per_node(const Platform& platform, const std::vector<int>& devices);

}  // namespace stepcast
