#include "sim/patterns/network_patterns.hpp"

#include <algorithm>
#include <set>

namespace stepcast {

PatternId NetworkPatterns::add(std::shared_ptr<const Schedule> schedule, Placement placement) {
  std::set<const void*> known;
  for (const Phase& phase : schedule->phases) {
    if (known.insert(phase.edges.get()).second) computed_routes_ += phase.edges->size();
  }
  return add({std::move(schedule), std::move(placement), {}});
}

const Pattern& NetworkPatterns::pattern(PatternId id) const {
  Pattern& pattern = patterns_[id];
  if (pattern.phases.empty()) {
    pattern.phases = phase_loads(*pattern.schedule, pattern.placement, bandwidths_);
    set_most_loaded(pattern.phases, bandwidths_);
  }
  return pattern;
}

double NetworkPatterns::uncontended(PatternId id, Bytes buffer) const {
  const Pattern& placed = pattern(id);
  return uncontended_seconds(placed.phases, placed.placement, buffer);
}

double NetworkPatterns::latency(PatternId id, Bytes buffer) const {
  double seconds = 0;
  for (const PhaseLoad& phase : pattern(id).phases) {
    double longest = 0;
    for (const EdgeKind kind : kEdgeKinds) {
      if (phase.of(kind).any)
        longest = std::max(longest, phase_cost(phase, kind, pattern(id).placement, buffer).latency);
    }
    seconds += longest;
  }
  return seconds;
}

const NetworkPatterns::MergedLinks& NetworkPatterns::merged_links() const {
  if (merged_.first_phase.size() == size()) return merged_;
  merged_ = {};
  std::vector<const std::vector<LinkWeight>*> uses;
  for (std::size_t i = 0; i < size(); ++i) {
    merged_.first_phase.push_back(uses.size());
    for (const PhaseLoad& phase : pattern(PatternId(i)).phases) {
      for (const EdgesLoad& edges : phase.edges) uses.push_back(&edges.links);
    }
  }
  LinkClasses classes = merge_links(uses, [this](int link) { return bandwidths_[link]; });
  merged_.of_phases = std::move(classes.patterns);
  merged_.bandwidths = std::move(classes.bandwidths);
  return merged_;
}

std::optional<NetworkPatterns::Known> NetworkPatterns::known(PatternId id, Bytes buffer) const {
  const auto found = known_.find({id, buffer.value});
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

double NetworkPatterns::lower_bound(PatternId id, Bytes buffer) const {
  if (const auto duration = known(id, buffer); duration && duration->modelled) return duration->seconds;
  const auto [bound, is_new] = lower_bounds_.try_emplace({id, buffer.value}, 0);
  if (!is_new) return bound->second;
  const auto [shape, is_first] = shapes_.try_emplace(id);
  if (is_first) shape->second = shape_of(pattern(id), bandwidths_);
  bound->second = lower_bound_seconds(pattern(id), shape->second, buffer, bandwidths_);
  return bound->second;
}

}  // namespace stepcast
