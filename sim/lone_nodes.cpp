#include "sim/lone_nodes.hpp"

#include <algorithm>
#include <set>

namespace stepcast {

LoneNodes::LoneNodes(const Platform& platform, const LinkBandwidths& bandwidths,
                     const std::vector<int>& endpoints)
    : platform_(platform),
      bandwidths_(bandwidths),
      links_per_node_(Topology(platform).links_per_node()),
      lone_(static_cast<std::size_t>(platform.nodes), false) {
  const std::set<int> used(endpoints.begin(), endpoints.end());
  std::vector<int> counts(lone_.size(), 0);
  for (const int endpoint : used) {
    // A host sends over any NIC, a device always over its own.
    const bool one_way = endpoint < platform.devices() || platform.network.ports_per_node() == 1;
    if (endpoint != platform.storage_endpoint())
      counts[static_cast<std::size_t>(platform.node_of(endpoint))] += one_way ? 1 : 2;
  }
  for (std::size_t node = 0; node < counts.size(); ++node) lone_[node] = counts[node] == 1;
}

void LoneNodes::shorten(int from, int to, std::vector<int>& route) const {
  const int out = platform_.node_of(from), in = platform_.node_of(to);
  if (out == in) return;
  const auto inside = [this](int node) {
    return [first = node * links_per_node_, last = (node + 1) * links_per_node_](int link) {
      return link >= first && link < last;
    };
  };
  const auto arrival = std::find_if(route.begin(), route.end(), inside(in));
  shorten_in(in, static_cast<std::size_t>(arrival - route.begin()), route.size(), route);
  const auto departure = std::find_if_not(route.begin(), route.end(), inside(out));
  shorten_in(out, 0, static_cast<std::size_t>(departure - route.begin()), route);
}

/// Keeps the narrowest of links [first, last), the first of equal ones.
void LoneNodes::shorten_in(int node, std::size_t first, std::size_t last, std::vector<int>& route) const {
  if (node < 0 || !lone_[static_cast<std::size_t>(node)] || last - first < 2) return;
  const auto begin = route.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = route.begin() + static_cast<std::ptrdiff_t>(last);
  const int kept = *std::min_element(
      begin, end, [this](int a, int b) { return bandwidths_[a].value < bandwidths_[b].value; });
  *begin = kept;
  route.erase(begin + 1, end);
}

}  // namespace stepcast
