#include "platforms/bisection.hpp"

#include <fmt/format.h>

namespace stepcast {
namespace {

int halves(int count) {
  return count / 2 * ((count + 1) / 2);
}

void bound(Bisection& best, double bandwidth, const std::string& method) {
  if (bandwidth < best.bandwidth.value) best = {{bandwidth}, method};
}

void bound_by(Bisection& best, const FatTreeShape& tree, const NetworkShape& network, int ports) {
  double bandwidth = network.port().bandwidth.value;
  std::int64_t span = 1, cables = 1;  // of one switch group of this level
  for (std::size_t l = 0; l < tree.levels.size(); ++l) {
    const FatTreeLevel& level = tree.levels[l];
    span *= level.down;
    cables *= level.up;
    bandwidth *= level.down / (level.taper * level.up);
    const std::int64_t groups = (ports + span - 1) / span;
    if (groups == 1) return;  // nothing above is needed to join these nodes
    bound(best, static_cast<double>(groups * cables) * bandwidth / 2,
          fmt::format("half of the cables up from level {}", l + 1));
  }
}

void bound_by(Bisection& best, const DragonflyShape& fly, const NetworkShape&, int ports) {
  const int per_chassis = fly.ports_per_router * fly.routers_per_chassis;
  const int per_group = per_chassis * fly.chassis_per_group;
  const int groups = (ports + per_group - 1) / per_group, chassis = (ports + per_chassis - 1) / per_chassis;
  if (groups > 1) {
    bound(best, halves(groups) * fly.cables_per_group_pair * fly.global_cable.bandwidth.value,
          "global cables between two halves of the groups");
  } else if (chassis > 1) {
    bound(best, halves(chassis) * fly.routers_per_chassis * fly.group_cable.bandwidth.value,
          "group cables between two halves of the chassis");
  } else {
    const int routers = (ports + fly.ports_per_router - 1) / fly.ports_per_router;
    if (routers > 1)
      bound(best, halves(routers) * fly.chassis_cable.bandwidth.value,
            "chassis cables between two halves of the routers");
  }
}

void bound_by(Bisection& best, const TorusShape& torus, const NetworkShape&, int) {
  const int routers = torus.size[0] * torus.size[1] * torus.size[2];
  for (int d = 0; d < 3; ++d) {
    if (torus.size[d] == 1) continue;
    bound(best, 2.0 * routers / torus.size[d] * torus.cable[d].bandwidth.value,
          fmt::format("two cuts across {} of the whole torus", "xyz"[d]));
  }
}

void bound_by(Bisection& best, const SitesShape& sites, const NetworkShape&, int) {
  bound(best, halves(sites.count) * sites.wan.bandwidth.value, "long links between two halves of the sites");
}

}  // namespace

Bisection bisection(const Platform& platform) {
  const int ports = platform.nodes * platform.network.ports_per_node();
  Bisection best{{ports * platform.network.port().bandwidth.value / 2}, "half of all NICs"};
  std::visit([&](const auto& fabric) { bound_by(best, fabric, platform.network, ports); },
             platform.network.fabric);
  return best;
}

}  // namespace stepcast
