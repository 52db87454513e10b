#include "sim/simgrid/simgrid_platform.hpp"

#include <fmt/format.h>

#include <map>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "sim/simgrid/simgrid_host.hpp"

namespace stepcast {
namespace sg4 = simgrid::s4u;
namespace routing = simgrid::kernel::routing;

/// A zone that computes its routes.
class ComputedZone : public routing::NetZoneImpl {
 public:
  explicit ComputedZone(const std::string& name) : NetZoneImpl(name) {}
  void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                 std::map<std::string, xbt_edge_t, std::less<>>*) override {}
};

class NodeZone;

/// The root. Its links are made when a route first takes them.
class FabricZone : public ComputedZone {
 public:
  FabricZone(const FlowLinks& links, double units_per_byte)
      : ComputedZone("fabric"), links_(links), units_per_byte_(units_per_byte) {}

  void get_local_route(const routing::NetPoint* from, const routing::NetPoint* to, routing::Route* into,
                       double*) override;
  void add_links(const std::vector<int>& ids, routing::Route& into);
  void add_links_between(int from, int to, routing::Route& into);
  const Topology& topology() const { return std::get<LinkBandwidths>(links_).topology(); }
  bool has_endpoints() const { return std::holds_alternative<LinkBandwidths>(links_); }
  sg4::Host* host(int endpoint);

  std::vector<int> given;  ///< links of the next route between two hosts of this zone itself
  int source = 0;          ///< endpoint from which the route leads that SimGrid is asking for

 private:
  NodeZone& zone_of(const std::string& name);
  simgrid::kernel::resource::StandardLinkImpl* link(int id);

  FlowLinks links_;
  double units_per_byte_;
  std::vector<int> route_;
  /// Routes of a platform with dead links: a search for each message would take too long.
  std::map<std::pair<int, int>, std::vector<int>> detours_;
  std::map<std::string, NodeZone*, std::less<>> zones_;
  std::unordered_map<int, simgrid::kernel::resource::StandardLinkImpl*> made_;
  std::unordered_map<int, sg4::Host*> hosts_;
};

/// The devices and the CPU of a node, or the storage.
///
/// SimGrid 3.32 builds a route between two zones of three: from the source to the gateway of its zone,
/// between the zones, and from the other gateway to the target. Only the last zone can know the route,
/// because the NIC depends on both ends. The first zone therefore only notes the source.
class NodeZone : public ComputedZone {
 public:
  NodeZone(const std::string& name, FabricZone& fabric) : ComputedZone(name), fabric_(fabric) {
    get_iface()->set_parent(fabric.get_iface());
    gateway = get_iface()->create_router(name + ".gateway");
  }

  void get_local_route(const routing::NetPoint* from, const routing::NetPoint* to, routing::Route* into,
                       double*) override {
    if (from != gateway) fabric_.source = endpoints.at(from);
    if (to != gateway) fabric_.add_links_between(fabric_.source, endpoints.at(to), *into);
  }

  routing::NetPoint* gateway;
  std::unordered_map<const routing::NetPoint*, int> endpoints;

 private:
  FabricZone& fabric_;
};

void FabricZone::get_local_route(const routing::NetPoint* from, const routing::NetPoint* to,
                                 routing::Route* into, double*) {
  if (!from->is_netzone()) return add_links(given, *into);
  into->gw_src_ = zones_.find(from->get_name())->second->gateway;
  into->gw_dst_ = zones_.find(to->get_name())->second->gateway;
}

void FabricZone::add_links(const std::vector<int>& ids, routing::Route& into) {
  for (const int id : ids) into.link_list_.push_back(link(id));
}

void FabricZone::add_links_between(int from, int to, routing::Route& into) {
  const bool keeps = topology().has_dead_links();
  std::vector<int>& route = keeps ? detours_[{from, to}] : route_;
  if (!keeps) route.clear();
  if (route.empty()) topology().route(from, to, route);
  add_links(route, into);
}

simgrid::kernel::resource::StandardLinkImpl* FabricZone::link(int id) {
  auto& made = made_[id];
  if (made != nullptr) return made;
  const auto add = [&](sg4::NetZone* zone, const std::string& name, BytesPerSecond bandwidth,
                       Seconds latency) {
    sg4::Link* link = zone->create_link(name, units_per_byte_ * bandwidth.value);
    link->set_latency(latency.value)->seal();
    return link->get_impl();
  };
  if (!has_endpoints()) {
    const auto& bandwidths = std::get<std::vector<BytesPerSecond>>(links_);
    return made = add(get_iface(), fmt::format("link{}", id), bandwidths[id], {0});
  }
  const std::string name = topology().dotted_link_name(id);
  const auto zone = zones_.find(std::string_view(name).substr(0, name.find('.')));
  return made = add((zone == zones_.end() ? static_cast<ComputedZone*>(this) : zone->second)->get_iface(),
                    name, std::get<LinkBandwidths>(links_)[id], topology().link(id).latency);
}

NodeZone& FabricZone::zone_of(const std::string& name) {
  NodeZone*& zone = zones_[name];
  if (zone == nullptr) zone = new NodeZone(name, *this);  // SimGrid deletes it
  return *zone;
}

sg4::Host* FabricZone::host(int endpoint) {
  sg4::Host*& made = hosts_[endpoint];
  if (made != nullptr) return made;
  const SimGridHost host = simgrid_host(std::get<LinkBandwidths>(links_).platform(), topology(), endpoint);
  NodeZone& zone = zone_of(host.name.substr(0, host.name.find('.')));
  made = zone.get_iface()->create_host(host.name, host.flops_per_second);
  for (const auto& [name, value] : host.properties) made->set_property(name, value);
  if (!host.disk.empty()) {
    const double bandwidth = units_per_byte_ * host.disk_bandwidth.value;
    made->create_disk(host.disk, bandwidth, bandwidth);
  }
  zone.endpoints[made->seal()->get_netpoint()] = endpoint;
  return made;
}

SimGridPlatform::SimGridPlatform(const FlowLinks& links, double units_per_byte)
    : fabric_(new FabricZone(links, units_per_byte)) {}

std::pair<sg4::Host*, sg4::Host*> SimGridPlatform::hosts(const FlowRoute& route) {
  if (const auto* pair = std::get_if<EndpointPair>(&route)) {
    if (!fabric_->has_endpoints()) throw std::invalid_argument("numbered links have no endpoints");
    return {fabric_->host(pair->from), fabric_->host(pair->to)};
  }
  // SimGrid 3.32 starts a flow only between two hosts, and takes its links from their route. A flow that
  // stands for a whole collective has no two hosts, so two hosts of the fabric lend it theirs. (The parallel
  // tasks of the host model L07 take several hosts, but another sharing.)
  if (lending_from_ == nullptr) {
    lending_from_ = fabric_->get_iface()->create_host("collective.from", 1.0)->seal();
    lending_to_ = fabric_->get_iface()->create_host("collective.to", 1.0)->seal();
  }
  fabric_->given = std::get<std::vector<int>>(route);
  return {lending_from_, lending_to_};
}

void keep_zones_open(int argc, char** argv) {
  // SimGrid 3.32 seals all zones when a process runs its first simulation, and never again in this process.
  // So an empty platform takes the seal.
  const sg4::Engine engine(&argc, argv);
  sg4::create_empty_zone("sealed");
  engine.seal_platform();
}

}  // namespace stepcast
