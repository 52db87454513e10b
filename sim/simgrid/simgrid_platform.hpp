#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "platforms/topology.hpp"

namespace simgrid::s4u {
class Host;
}

namespace stepcast {

/// Two endpoints of a platform (Platform says how they are numbered).
struct EndpointPair {
  int from = 0, to = 0;
};

/// What a flow uses: the route between two endpoints, or the numbers of links (a link that is listed k times
/// carries k times as much).
using FlowRoute = std::variant<EndpointPair, std::vector<int>>;

/// The links that flows share: all links of a platform, or numbered links of these bandwidths.
using FlowLinks = std::variant<LinkBandwidths, std::vector<BytesPerSecond>>;

class FabricZone;

/// A platform in SimGrid: a zone for the fabric, in it a zone for each node with a host for each device and
/// for the CPU, and a zone with a host for the storage (SimGridHost says what hosts have). Links and hosts
/// have the names of Topology; links have the latencies of the platform, of which SimGrid's routes take no
/// notice: callers wait for the latency before they start a flow.
///
/// Zones store no routes: they ask Topology::route for each pair of hosts. Zones, hosts and links are made
/// when the first flow needs them, so that a run pays only for what it uses. A process can have one object at
/// a time, after its SimGrid engine was made.
class SimGridPlatform {
 public:
  /// @param units_per_byte  factor on the bandwidths
  SimGridPlatform(const FlowLinks& links, double units_per_byte);

  /// Two hosts between which SimGrid's next route is `route`.
  /// @throws std::invalid_argument for endpoints if the links are numbered, and if Topology::route does
  std::pair<simgrid::s4u::Host*, simgrid::s4u::Host*> hosts(const FlowRoute& route);

 private:
  FabricZone* fabric_;                                                  ///< SimGrid deletes it
  simgrid::s4u::Host *lending_from_ = nullptr, *lending_to_ = nullptr;  ///< of flows whose links are given
};

/// Lets zones grow while SimGrid runs. Call it in each process before its first SimGrid engine.
void keep_zones_open(int argc, char** argv);

}  // namespace stepcast
