#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/network/adaptive_routes.hpp"
#include "sim/network/max_min_sharing.hpp"
#include "sim/network/schedule_link_load.hpp"

namespace stepcast {

/// A schedule with the routes of its edges, computed once for all its messages. The schedule and the
/// placement must outlive it.
struct MessagePattern {
  static constexpr double kUnlimited = 1e300;

  struct Route {
    double latency = 0;       ///< of its links, times Placement::latency_factor [s]
    std::uint32_t first = 0;  ///< index of its first link in `links`
    std::uint16_t count = 0;
    bool local = false;            ///< both endpoints are in one node
    int chunks = 1;                ///< that its edge moves
    double max_rate = kUnlimited;  ///< bandwidth of the links that leave_out_unshared_links removed [B/s]
  };
  /// Edges that one or several phases use.
  struct Edges {
    std::vector<Route> routes;  ///< by edge
    /// The edges that rank r sends or receives are of_rank[first_of_rank[r]] .. before the first of r + 1.
    std::vector<std::uint32_t> first_of_rank, of_rank;
  };

  MessagePattern(const Schedule& schedule, const Placement& placement);

  std::span<const int> links_of(const Route& route) const {
    return {links.data() + route.first, route.count};
  }

  const Schedule& schedule;
  const Placement& placement;
  std::vector<Edges> edges;
  std::vector<std::uint32_t> edges_of_phase;  ///< by phase: index in `edges`
  std::vector<std::uint32_t> first_edge;      ///< by phase: number of edges of all phases before
  std::vector<int> links;
};

/// Removes links that can never be full before another one: of links that the messages of all `patterns` use
/// alike (the same pairs of endpoints), only the narrowest stays. Max-min sharing is unchanged if no other
/// messages use these links.
void keep_narrowest_links(std::span<MessagePattern* const> patterns, const LinkBandwidths& bandwidths);

/// Removes the links that only one edge of all `patterns` uses, and keeps their bandwidth in
/// Route::max_rate. Max-min sharing is unchanged if no other messages use these links and each pattern runs
/// once at a time, because an edge has one message at a time.
void leave_out_unshared_links(std::span<MessagePattern* const> patterns, const LinkBandwidths& bandwidths);

/// Simulates every message of collectives, each after its latency and then over its own links. A rank enters
/// a round when its sends and receives of all earlier rounds are done; a message starts when both of its
/// ranks have entered its round. The cheaper fidelities are checked against this one.
class MessageNetwork {
 public:
  /// @param links   shares the links among messages; null: SimGrid does
  /// @param routes  chooses the route of each message; null: the patterns' routes are taken
  MessageNetwork(Engine& engine, MaxMinSharing* links, AdaptiveRoutes* routes = nullptr);
  ~MessageNetwork();

  /// Calls `done` when the last rank has finished. The pattern must outlive the simulation.
  void simulate(const MessagePattern& pattern, Bytes buffer, Engine::Callback&& done);

 private:
  class Collective;
  struct Sent {
    Collective* collective;
    std::uint32_t phase, edge;
  };
  /// Messages whose latency ends at one date; they start in one event.
  struct Batch {
    double date = 0;
    std::vector<Sent> messages;
  };
  static constexpr std::size_t kOpenBatches = 4;
  static constexpr std::uint32_t kNoBatch = ~std::uint32_t{0};

  void start_at(double date, const Sent& message);
  std::uint32_t batch_at(double date);
  void start_batch(std::uint32_t number);

  Engine& engine_;
  MaxMinSharing* links_;
  AdaptiveRoutes* routes_;
  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<Collective*> idle_;
  std::vector<Batch> batches_;
  std::vector<std::uint32_t> free_batches_;
  std::array<std::uint32_t, kOpenBatches> open_{};  ///< the last batches, to which messages may be added
  std::uint32_t last_ = kNoBatch;                   ///< the one to which a message was added last
  std::size_t next_open_ = 0;
};

}  // namespace stepcast
