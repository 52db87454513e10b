#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/network/adaptive_routes.hpp"
#include "sim/network/max_min_sharing.hpp"
#include "sim/patterns/message_simulation.hpp"
#include "sim/patterns/network_patterns.hpp"

namespace stepcast {

/// The way in which a run simulates the patterns of its network.
struct LinkOptions {
  Fidelity fidelity = Fidelity::message;
  LinkSharing sharing = LinkSharing::max_min;
  /// `start_flow` will never be called, so that links that cannot limit patterns are left out.
  bool patterns_only = false;
  bool one_at_a_time = false;  ///< no pattern will be started while it is running
  /// Every pattern takes its lower bound, as if it shared its links with nothing else.
  bool lower_bounds = false;
  /// Limit of MaxMinSharing::work; more work throws TooMuchWork.
  std::int64_t max_work = std::numeric_limits<std::int64_t>::max();
};

/// One run: a clock that starts at 0, and the links on which patterns and messages are started. The patterns
/// are complete before, because the fidelity `coupled` merges the links that all of them load equally.
class SimNetwork {
 public:
  /// @param patterns  must outlive the run
  SimNetwork(const NetworkPatterns& patterns, const LinkOptions& options);

  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  Fidelity fidelity() const { return options_.fidelity; }
  std::int64_t flows() const { return engine_->flows() + (links_ ? links_->flows() : 0); }
  /// Numbers of flows and patterns by the solver that simulated them.
  struct Started {
    std::int64_t simgrid = 0;   ///< flows that SimGrid shared
    std::int64_t built_in = 0;  ///< flows that MaxMinSharing shared
    std::int64_t sampled = 0;   ///< patterns of a sampled duration
    std::int64_t modelled = 0;  ///< patterns of a duration that a model of the library gives
  };
  Started started() const { return {engine_->flows(), links_ ? links_->flows() : 0, sampled_, modelled_}; }

  /// Starts a pattern now and calls `done` when every rank has finished. For the fidelities fluid and coupled
  /// `segments` divides a phase, so that its latencies alternate with its transfers.
  void start_pattern(PatternId pattern, Bytes buffer, int segments, Engine::Callback done);

  /// Starts a flow between two endpoints. @param links  its route
  void start_flow(EndpointPair ends, std::span<const int> links, Bytes size, Engine::Callback&& done);
  /// Starts a flow over merged links (fidelity coupled).
  void start_merged_flow(const std::vector<int>& links, Bytes size, Engine::Callback&& done);

  const NetworkPatterns& patterns() const { return patterns_; }
  /// The merged links of all edges of a kind in a phase, for `start_merged_flow` (fidelity coupled).
  const std::vector<int>& phase_links(PatternId pattern, std::size_t phase, EdgeKind kind) const;

 private:
  void place_messages();

  const NetworkPatterns& patterns_;
  LinkOptions options_;
  std::unique_ptr<Engine> engine_;
  std::optional<MaxMinSharing> links_;       ///< unless SimGrid shares them
  std::optional<AdaptiveRoutes> routes_;     ///< if messages choose their routes
  std::deque<MessagePattern> placed_;        ///< by pattern (fidelity message)
  std::optional<MessageNetwork> messages_;   ///< fidelity message
  std::int64_t sampled_ = 0, modelled_ = 0;  ///< see Started
};

}  // namespace stepcast
