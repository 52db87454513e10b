#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/link_classes.hpp"
#include "sim/max_min_links.hpp"
#include "sim/paths.hpp"
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
  /// Whose max-min sharing messages get: they end at the same dates.
  enum class Sharing { simgrid, own };

  SimNetwork(LinkBandwidths bandwidths, Form form, Sharing sharing = Sharing::simgrid)
      : bandwidths_(std::move(bandwidths)), form_(form), sharing_(sharing) {}

  int add(std::shared_ptr<const Schedule> schedule, Placement placement);  ///< returns the pattern's number
  int add(Pattern pattern);                             ///< one whose links another network has worked out
  double uncontended(int pattern, Bytes buffer) const;  ///< seconds alone on the network
  /// Seconds of the fixed part (latencies and overheads) of `uncontended`.
  double latency(int pattern, Bytes buffer) const;

  /// Such a collective, which never meets another, is known to take so long, and is not played.
  void know(int pattern, Bytes buffer, double seconds) { known_[{pattern, buffer.value}] = seconds; }

  /// Until further notice everything takes the least it could, as if it met nothing on its links. Before
  /// `start`.
  void play_shortest(bool shortest) { shortest_ = shortest; }

  /// Of the own sharing, in the unit of MaxMinLinks::work; beyond it TooMuchWork is thrown. Before `start`.
  void limit_work(std::int64_t most) { most_work_ = most; }

  void start();  ///< builds the engine, anew where it ran before
  Engine& engine() { return *engine_; }
  Form form() const { return form_; }
  std::int64_t routes() const { return routes_; }  ///< worked out so far
  std::int64_t flows() const { return engine_->flows() + (links_ ? links_->flows() : 0); }

  /// Plays a pattern from now on and calls `done` when every rank has finished. `segments` cuts a phase so
  /// that its latencies lie between its transfers (forms fluid and coupled).
  void play(int pattern, Bytes buffer, int segments, Engine::Callback done);

  /// A message that is no pattern's, by the same sharing (form message).
  void start_flow(std::span<const int> links, Bytes size, Engine::Callback&& done);

  const Pattern& pattern(int index) const { return patterns_[static_cast<std::size_t>(index)]; }
  /// Links to pass to Engine::start_flow for an edge of a pattern (form fluid).
  std::vector<int> edge_links(const Pattern& pattern, const Edge& edge) const;
  const std::vector<int>& phase_links(int pattern, std::size_t phase, EdgeKind kind) const;

 private:
  std::optional<double> known_seconds(int pattern, Bytes buffer);
  void merge();

  LinkBandwidths bandwidths_;
  Form form_;
  Sharing sharing_;
  std::vector<Pattern> patterns_;
  std::map<std::pair<int, double>, double> known_, least_;  ///< seconds of a pattern and its bytes
  std::vector<std::vector<int>> class_links_;  ///< of each phase of each pattern, by kind of edge
  std::vector<std::size_t> first_phase_;       ///< of each pattern in class_links_
  std::unique_ptr<Engine> engine_;
  std::optional<MaxMinLinks> links_;  ///< where sharing is own
  std::optional<Paths> paths_;        ///< of messages
  bool shortest_ = false;
  std::int64_t most_work_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t routes_ = 0;
};

}  // namespace stepcast
