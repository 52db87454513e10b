#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/typed_numbers.hpp"
#include "sim/patterns/pattern.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

/// A pattern of a network: the number that `NetworkPatterns::add` returned.
using PatternId = TypedId<struct PatternTag>;

/// The links of a platform and the patterns that runs may start on them. A run (SimNetwork) only reads them,
/// so that no run changes another one.
class NetworkPatterns {
 public:
  explicit NetworkPatterns(LinkBandwidths bandwidths) : bandwidths_(std::move(bandwidths)) {}

  PatternId add(std::shared_ptr<const Schedule> schedule, Placement placement);
  PatternId add(Pattern pattern) { return patterns_.add(std::move(pattern)); }  ///< its links are computed

  const LinkBandwidths& bandwidths() const { return bandwidths_; }
  std::size_t size() const { return patterns_.size(); }
  /// By PatternId; those that `pattern` was not asked for have no loads.
  const std::vector<Pattern>& placed() const { return patterns_; }
  std::int64_t routes() const { return computed_routes_; }  ///< Number of routes computed by `add`.

  /// The pattern with the links that it loads. They are computed in the first call: simulating every message
  /// does not need them.
  const Pattern& pattern(PatternId id) const;
  double uncontended(PatternId id, Bytes buffer) const;  ///< Duration on an otherwise idle network [s].
  /// The part of `uncontended` that does not depend on bandwidth: latencies and message overheads [s].
  double latency(PatternId id, Bytes buffer) const;
  /// Lower bound of the duration [s]: the modelled one if there is one, or lower_bound_seconds.
  double lower_bound(PatternId id, Bytes buffer) const;

  /// The merged links of all patterns (fidelity coupled), computed in the first call after the last `add`.
  struct MergedLinks {
    std::vector<BytesPerSecond> bandwidths;
    std::vector<std::vector<int>> of_phases;      ///< by pattern, phase and kind of edge
    IdTable<PatternId, std::size_t> first_phase;  ///< by pattern: its first entry in of_phases
  };
  const MergedLinks& merged_links() const;

  /// A duration that replaces the simulation of a pattern.
  struct Known {
    double seconds = 0;     ///< [s]
    bool modelled = false;  ///< a model of the library gives it; otherwise it was sampled (Sampling)
  };
  /// States the duration of a pattern with this buffer. Sampled durations are for collectives that share
  /// their links with nothing else.
  void set_known(PatternId id, Bytes buffer, Known known) { known_[{id, buffer.value}] = known; }
  std::optional<Known> known(PatternId id, Bytes buffer) const;

 private:
  LinkBandwidths bandwidths_;
  mutable IdTable<PatternId, Pattern> patterns_;         ///< their loads are computed when they are asked for
  std::map<std::pair<PatternId, double>, Known> known_;  ///< by pattern and bytes
  mutable std::map<std::pair<PatternId, double>, double> lower_bounds_;  ///< computed so far [s]
  mutable std::map<PatternId, PatternShape> shapes_;                     ///< computed so far
  mutable MergedLinks merged_;                                           ///< see merged_links
  std::int64_t computed_routes_ = 0;
};

}  // namespace stepcast
