#pragma once

#include <span>

#include "sim/network/max_min_sharing.hpp"
#include "sim/network/route_cache.hpp"
#include "sim/network/schedule_link_load.hpp"

namespace stepcast {

/// The parts of the network that the simulation of single messages uses.
struct MessageNetwork {
  Engine& engine;
  RouteCache& routes;
  MaxMinSharing* links;  ///< shares the links among messages; null: SimGrid does

  void start_flow(std::span<const int> over, Bytes size, Engine::Callback&& done) const;
};

/// The collective to simulate. The schedule and the placement must outlive the simulation of the collective.
struct PlacedCollective {
  const Schedule& schedule;
  const Placement& placement;
  Bytes buffer;
};

/// Simulates every message of a schedule, each after its latency, over its own links, and calls `done` when
/// the last rank has finished. The cheaper fidelities are checked against this one.
void simulate_messages(const MessageNetwork& network, const PlacedCollective& collective,
                       Engine::Callback done);

}  // namespace stepcast
