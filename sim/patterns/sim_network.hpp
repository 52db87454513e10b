#pragma once

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/typed_numbers.hpp"
#include "sim/engine/engine.hpp"
#include "sim/network/max_min_sharing.hpp"
#include "sim/network/schedule_link_load.hpp"
#include "sim/patterns/message_simulation.hpp"
#include "sim/patterns/pattern.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

/// A pattern of a network: the number that `SimNetwork::add` returned.
using PatternId = TypedId<struct PatternTag>;

/// The links of a platform and the patterns that a simulation may start on them. All patterns must be added
/// before `start`, because SimGrid accepts no links after its own start, and because the fidelity `coupled`
/// merges the links that all patterns load equally.
class SimNetwork {
 public:
  SimNetwork(LinkBandwidths bandwidths, Fidelity fidelity, LinkSharing sharing = LinkSharing::max_min)
      : bandwidths_(std::move(bandwidths)), fidelity_(fidelity), sharing_(sharing) {}

  PatternId add(std::shared_ptr<const Schedule> schedule, Placement placement);
  PatternId add(Pattern pattern);                       ///< Adds a pattern whose links are already computed.
  double uncontended(PatternId pattern, Bytes buffer);  ///< Duration on an otherwise idle network [s].
  /// The part of `uncontended` that does not depend on bandwidth: latencies and message overheads [s].
  double latency(PatternId pattern, Bytes buffer);

  /// Gives the duration [s] of a pattern with this buffer, so that `start_pattern` waits for that time
  /// instead of simulating the pattern. For collectives that share their links with nothing else.
  void set_known_seconds(PatternId pattern, Bytes buffer, double seconds) {
    known_[{pattern, buffer.value}] = seconds;
  }

  /// Gives a pattern the duration that a model of the library computes. This duration is also the pattern's
  /// lower bound.
  void set_modelled_seconds(PatternId pattern, Bytes buffer, double seconds) {
    set_known_seconds(pattern, buffer, seconds);
    lower_bounds_[{pattern, buffer.value}] = seconds;
  }

  /// Makes every pattern take its lower bound, as if it shared its links with nothing else. Call it before
  /// `start`.
  void use_lower_bounds(bool lower_bounds) { use_lower_bounds_ = lower_bounds; }

  /// Limits the work of MaxMinSharing, in the unit of MaxMinSharing::work; more work throws
  /// TooMuchWork. Call it before `start`.
  void limit_work(std::int64_t max_work) { max_work_ = max_work; }

  /// Tells that `start_flow` will never be called, which allows to leave out links that cannot limit
  /// patterns.
  /// @param one_at_a_time  no pattern will be started while it is running
  void use_patterns_only(bool one_at_a_time) {
    patterns_only_ = true;
    one_at_a_time_ = one_at_a_time;
  }

  void start();  ///< Builds the engine. A later call builds a new engine for another run.
  Engine& engine() { return *engine_; }
  Fidelity fidelity() const { return fidelity_; }
  std::int64_t routes() const { return computed_routes_; }  ///< Number of routes computed by `add` so far.
  std::int64_t flows() const { return engine_->flows() + (links_ ? links_->flows() : 0); }
  /// Numbers of flows and patterns by the solver that simulated them in this run.
  struct Started {
    std::int64_t simgrid = 0;   ///< flows that SimGrid shared
    std::int64_t built_in = 0;  ///< flows that MaxMinSharing shared
    std::int64_t sampled = 0;   ///< patterns of a known duration
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

  /// The pattern with the links that it loads. They are computed in the first call: simulating every message
  /// does not need them.
  const Pattern& pattern(PatternId id);
  static EndpointPair ends(const Pattern& pattern, const Edge& edge);
  /// The links of one edge of a pattern, for `start_flow` (fidelity fluid).
  std::vector<int> edge_links(const Pattern& pattern, const Edge& edge) const;
  /// The merged links of all edges of a kind in a phase, for `start_merged_flow` (fidelity coupled).
  const std::vector<int>& phase_links(PatternId pattern, std::size_t phase, EdgeKind kind) const;

 private:
  std::optional<double> known_seconds(PatternId pattern, Bytes buffer);
  std::vector<BytesPerSecond> merge();
  void place_messages();

  LinkBandwidths bandwidths_;
  Fidelity fidelity_;
  LinkSharing sharing_;
  IdTable<PatternId, Pattern> patterns_;
  std::map<std::pair<PatternId, double>, double> known_, lower_bounds_;  ///< seconds by pattern and bytes
  std::vector<std::vector<int>> class_links_;    ///< by pattern, phase and kind of edge, see phase_links
  IdTable<PatternId, std::size_t> first_phase_;  ///< by pattern: its first entry in class_links_
  std::unique_ptr<Engine> engine_;
  std::optional<MaxMinSharing> links_;      ///< unless SimGrid shares them
  std::deque<MessagePattern> placed_;       ///< by pattern (fidelity message)
  std::optional<MessageNetwork> messages_;  ///< fidelity message
  bool use_lower_bounds_ = false, patterns_only_ = false, one_at_a_time_ = false;
  std::int64_t max_work_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t computed_routes_ = 0;
  std::int64_t sampled_ = 0, modelled_ = 0;  ///< see Started
};

}  // namespace stepcast
