#pragma once

#include <functional>
#include <vector>

#include "core/units.hpp"
#include "sim/usage.hpp"

namespace stepcast {

/// Links that stand for all links of a platform when only known patterns of flows use them.
struct LinkClasses {
  std::vector<BytesPerSecond> bandwidths;  ///< of each class, scaled so that weights are whole numbers
  std::vector<std::vector<int>> patterns;  ///< of each pattern: class ids, a class of weight k listed k times
};

/// Merges links that every pattern loads alike, and leaves out links that can never be the first to saturate:
/// max-min sharing among flows of these patterns stays what it was (weights are rounded to 0.2 % where they
/// are no small ratios). `patterns[i]` is the usage of pattern i.
LinkClasses merge_links(const std::vector<const std::vector<LinkWeight>*>& patterns,
                        const std::function<BytesPerSecond(int link)>& bandwidth);

}  // namespace stepcast
