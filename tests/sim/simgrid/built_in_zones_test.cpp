// SimGrid's own fat trees, dragonflies and tori against stepcast's. SimGrid 3.32 gives all cables of such a
// zone one latency and one bandwidth, so the shapes here do too; it crashes on dragonflies of more groups
// than routers in a chassis.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <simgrid/s4u.hpp>

#include "tests/platforms/built_platforms.hpp"
#include "tests/sim/child.hpp"

namespace stepcast::built_in_zones_test {

namespace sg4 = simgrid::s4u;

namespace {

constexpr BytesPerSecond kBandwidth{1e9};  // as the NICs of platform_of
constexpr Seconds kLatency{0.5e-6};
constexpr Link kCable{kBandwidth, kLatency};

/// What a message meets between the ports of two nodes.
struct Route {
  std::size_t hops = 0;
  double latency = 0, bandwidth = INFINITY;
};

/// With the cables of the NICs, or the fabric alone.
enum class Nics { with, without };

Route own_route(const Topology& topology, int nodes, int from, int to, Nics nics) {
  Route route;
  for (const int id : route_between(topology, from, to)) {
    const bool fabric = id >= nodes * topology.links_per_node();
    if (!fabric && (nics == Nics::without || topology.link_kind(id) != "NIC")) continue;
    ++route.hops;
    route.latency += topology.link(id).latency.value;
    route.bandwidth = std::min(route.bandwidth, topology.link(id).bandwidth.value);
  }
  return route;
}

Route simgrid_route(int from, int to) {
  const sg4::Engine* engine = sg4::Engine::get_instance();
  std::vector<sg4::Link*> links;
  Route route;
  engine->host_by_name(std::to_string(from))
      ->route_to(engine->host_by_name(std::to_string(to)), links, &route.latency);
  route.hops = links.size();
  for (const sg4::Link* link : links) route.bandwidth = std::min(route.bandwidth, link->get_bandwidth());
  return route;
}

using NetPoint = simgrid::kernel::routing::NetPoint;

/// A host named by its number.
std::pair<NetPoint*, NetPoint*> new_host(sg4::NetZone* zone, const std::vector<unsigned long>&,
                                         unsigned long id) {
  return {zone->create_host(std::to_string(id), 1.0)->seal()->get_netpoint(), nullptr};
}

/// Divides pairs of nodes into kinds; none: the pair is not compared.
using Kind = std::function<std::optional<int>(int, int)>;

/// The number of routes by how many hops they have, their latency in ns, and their bandwidth. `kind` divides
/// pairs of nodes.
using Routes = std::map<std::array<long, 4>, int>;

/// Counts the routes of all pairs, with SimGrid or with Topology.
Routes counted(int nodes, const Kind& kind, const std::function<Route(int, int)>& of) {
  Routes count;
  for (int from = 0; from < nodes; ++from) {
    for (int to = 0; to < nodes; ++to) {
      const auto compared = from == to ? std::nullopt : kind(from, to);
      if (!compared) continue;
      const Route route = of(from, to);
      ++count[{*compared, static_cast<long>(route.hops), std::lround(route.latency * 1e9),
               std::lround(route.bandwidth)}];
    }
  }
  return count;
}

/// Whether both have as many routes of each sort. `build` makes the root zone of SimGrid.
bool same_routes(const Platform& platform, Nics nics, const std::function<void()>& build, const Kind& kind) {
  return number_from_child([&] {
           std::string words[] = {"test", "--log=root.thresh:critical"};
           char* pointers[] = {words[0].data(), words[1].data()};
           int count = 2;
           const sg4::Engine engine(&count, pointers);
           build();
           engine.seal_platform();
           const Topology topology(platform);
           const int nodes = platform.nodes;
           const Routes own = counted(
               nodes, kind, [&](int from, int to) { return own_route(topology, nodes, from, to, nics); });
           const Routes theirs = counted(nodes, kind, simgrid_route);
           return own == theirs ? 1 : 0;
         }) == 1;
}

constexpr auto kSplit = sg4::Link::SharingPolicy::SPLITDUPLEX;

}  // namespace

TEST_CASE("fat trees have SimGrid's routes between every two nodes", "[sim]") {
  struct Case {
    std::vector<unsigned> down, up;
  };
  for (const auto& [down, up] : {Case{{4, 4}, {1, 2}}, Case{{4, 5}, {1, 4}}, Case{{2, 3, 4}, {1, 2, 3}}}) {
    FatTreeShape shape;
    int nodes = down[0];
    for (std::size_t level = 0; level + 1 < down.size(); ++level) {
      const int below = static_cast<int>(down[level]), above = up[level + 1];
      shape.levels.push_back({below, 1.0 * below / above, above, kLatency});
      nodes *= static_cast<int>(down[level + 1]);
    }
    const auto build = [&, down = down, up = up] {
      const unsigned levels = down.size();
      sg4::create_fatTree_zone("zone", nullptr, {levels, down, up, std::vector<unsigned>(levels, 1)},
                               sg4::ClusterCallbacks(new_host), kBandwidth.value, kLatency.value, kSplit);
    };
    // Each pair is a kind of its own.
    const auto pair = [&](int from, int to) { return from * nodes + to; };
    CHECK(same_routes(platform_of(nodes, shape), Nics::with, build, pair));
  }
}

TEST_CASE("tori have SimGrid's routes between every two nodes", "[sim]") {
  for (const auto& [x, y, z] : {std::array{4, 4, 4}, std::array{5, 3, 2}, std::array{7, 1, 6}}) {
    const int nodes = x * y * z;
    const Platform platform = platform_of(nodes, TorusShape{{x, y, z}, {kCable, kCable, kCable}, 1});
    const auto build = [&, size = std::vector{x, y, z}] {
      sg4::create_torus_zone("zone", nullptr, {size.begin(), size.end()}, sg4::ClusterCallbacks(new_host),
                             kBandwidth.value, kLatency.value, kSplit);
    };
    const auto pair = [&](int from, int to) { return from * nodes + to; };
    CHECK(same_routes(platform, Nics::without, build, pair));
  }
}

TEST_CASE("dragonflies have SimGrid's routes, as many of each length between every two groups", "[sim]") {
  // SimGrid wires the cables between groups to other routers (in each group to number h of chassis 0 for
  // group h), so single pairs differ, but not how many pairs of nodes of two groups have a route of each
  // length. In a group, after the hop inside a chassis, SimGrid 3.32 goes on from chassis 0 whichever chassis
  // it was; those pairs are left out.
  for (const auto& [groups, chassis, slots, ports] :
       {std::array{4, 3, 4, 2}, std::array{3, 6, 8, 1}, std::array{1, 3, 5, 2}}) {
    const int nodes = groups * chassis * slots * ports, group = chassis * slots * ports;
    const Platform platform =
        platform_of(nodes, DragonflyShape{ports, slots, chassis, groups, 1, kCable, kCable, kCable});
    const auto build = [size = std::array{static_cast<unsigned>(groups), static_cast<unsigned>(chassis),
                                          static_cast<unsigned>(slots), static_cast<unsigned>(ports)}] {
      sg4::create_dragonfly_zone("zone", nullptr, {{size[0], 1}, {size[1], 1}, {size[2], 1}, size[3]},
                                 sg4::ClusterCallbacks(new_host), kBandwidth.value, kLatency.value, kSplit);
    };
    const Kind kind = [&, groups = groups, slots = slots, ports = ports](int from,
                                                                         int to) -> std::optional<int> {
      const int a = from / group, b = to / group;
      if (a != b) return -(a * groups + b) - 1;
      const bool in_first = from % group / ports < slots,
                 same_slot = from / ports % slots == to / ports % slots;
      return in_first || same_slot ? std::optional(from * nodes + to) : std::nullopt;
    };
    CHECK(same_routes(platform, Nics::with, build, kind));
  }
}

}  // namespace stepcast::built_in_zones_test
