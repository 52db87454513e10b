#pragma once

#include <vector>

#include "platforms/platform.hpp"

namespace stepcast {

/// The number of rings through all `devices` that NVLinks carry at the same time, as NCCL's graph search lays
/// them: each cable carries one ring each way. Every undirected ring counts twice, once for each direction.
/// 0: no ring passes all devices over NVLinks alone.
///
/// Finds the most rings by a search with a limit, as NCCL's does; above some 16 devices it may find fewer.
/// @param peers    the cables between devices of a node
/// @param devices  numbers in the node, at least 2
int rings_over_links(const std::vector<PeerLink>& peers, const std::vector<int>& devices);

}  // namespace stepcast
