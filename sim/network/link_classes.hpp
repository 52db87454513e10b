#pragma once

#include <functional>
#include <vector>

#include "core/units.hpp"
#include "sim/network/schedule_link_load.hpp"

namespace stepcast {

/// Equivalence classes of links. They replace the links of a platform when only known patterns of flows use
/// them.
struct LinkClasses {
  std::vector<BytesPerSecond> bandwidths;  ///< by class, scaled so that weights are whole numbers
  /// Class ids of each pattern; a class of weight k is listed k times.
  std::vector<std::vector<int>> patterns;
};

/// Merges links that every pattern loads equally, and drops links that can never be the first to saturate.
/// Max-min sharing among flows of these patterns is unchanged, up to the rounding of weights to 0.2 % where
/// their ratios are not ratios of small whole numbers. `patterns[i]` holds the link weights of pattern i.
LinkClasses merge_links(const std::vector<const std::vector<LinkWeight>*>& patterns,
                        const std::function<BytesPerSecond(int link)>& bandwidth);

}  // namespace stepcast
