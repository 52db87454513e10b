#pragma once

#include <vector>

#include "platforms/link_bandwidths.hpp"

namespace stepcast {

/// Nodes of which a run uses one endpoint only, which has one way out and one way in. All links of such a way
/// carry the same messages, so the narrowest of them decides, and stands for all.
class LoneNodes {
 public:
  /// @param endpoints  that send or receive; may repeat
  LoneNodes(const Platform& platform, const LinkBandwidths& bandwidths, const std::vector<int>& endpoints);

  /// Leaves out the links of a route that never decide.
  void shorten(int from, int to, std::vector<int>& route) const;

 private:
  void shorten_in(int node, std::size_t first, std::size_t last, std::vector<int>& route) const;

  const Platform& platform_;
  const LinkBandwidths& bandwidths_;
  int links_per_node_;
  std::vector<bool> lone_;  ///< of each node
};

}  // namespace stepcast
