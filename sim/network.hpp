#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/link_classes.hpp"
#include "sim/usage.hpp"
#include "strategies/conditions.hpp"

namespace stepcast {

/// A collective that the run may play, with its links worked out.
struct Pattern {
  std::shared_ptr<const Schedule> schedule;
  Placement placement;
  std::vector<PhaseUsage> phases;
};

/// The links of a platform as the simulation needs them. All patterns must be known before the engine starts,
/// because SimGrid takes no links later, and because links that all patterns load alike are merged when no
/// form needs them apart.
class SimNetwork {
 public:
  SimNetwork(LinkBandwidths bandwidths, Form form) : bandwidths_(std::move(bandwidths)), form_(form) {}

  int add(std::shared_ptr<const Schedule> schedule, Placement placement);  ///< returns the pattern's number
  int add(Pattern pattern);                             ///< one whose links another network has worked out
  double uncontended(int pattern, Bytes buffer) const;  ///< seconds alone on the network
  /// Seconds of the fixed part (latencies and overheads) of `uncontended`.
  double latency(int pattern, Bytes buffer) const;

  void start();  ///< builds the engine
  Engine& engine() { return *engine_; }
  Form form() const { return form_; }
  std::int64_t routes() const { return routes_; }  ///< worked out so far

  /// Plays a pattern from now on and calls `done` when every rank has finished. `segments` cuts a phase so
  /// that its latencies lie between its transfers (forms fluid and coupled).
  void play(int pattern, Bytes buffer, int segments, Engine::Callback done);

  const Pattern& pattern(int index) const { return patterns_[static_cast<std::size_t>(index)]; }
  /// Links to pass to Engine::start_flow for an edge of a pattern (forms message and fluid).
  std::vector<int> edge_links(const Pattern& pattern, const Edge& edge) const;
  const std::vector<int>& phase_links(int pattern, std::size_t phase, EdgeKind kind) const;

 private:
  LinkBandwidths bandwidths_;
  Form form_;
  std::vector<Pattern> patterns_;
  std::vector<std::vector<int>> class_links_;  ///< of each phase of each pattern, by kind of edge
  std::vector<std::size_t> first_phase_;       ///< of each pattern in class_links_
  std::unique_ptr<Engine> engine_;
  std::int64_t routes_ = 0;
};

}  // namespace stepcast
