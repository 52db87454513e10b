#include "sim/network/adaptive_routes.hpp"

#include <algorithm>
#include <utility>

namespace stepcast {

std::span<const int> AdaptiveRoutes::best(int from, int to, std::span<const int> usual) {
  const unsigned choices = topology_.choices(from, to);
  if (choices == 1) return usual;
  double least = 0;
  for (unsigned choice = 0; choice < choices; ++choice) {
    tried_.clear();
    topology_.route(from, to, choice, tried_);
    const double load = load_of(tried_);
    if (choice > 0 && load >= least) continue;
    least = load;
    std::swap(best_, tried_);
  }
  return best_;
}

double AdaptiveRoutes::load_of(const std::vector<int>& route) const {
  double cables = 0, most = 0;
  for (const int link : route) {
    if (!topology_.in_fabric(link)) continue;
    ++cables;
    most = std::max(most, flows_.flows_on(link) / bandwidths_[link].value);
  }
  return cables * most;
}

}  // namespace stepcast
