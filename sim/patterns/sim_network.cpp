#include "sim/patterns/sim_network.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "sim/patterns/pattern.hpp"

namespace stepcast {
namespace {

struct PatternStart {
  PatternId pattern;
  Bytes buffer;
  int segments = 1;
};

/// One collective that is being simulated phase after phase: the latencies of its rounds, then its bytes, as
/// one flow per edge (fluid) or as one flow for all edges (coupled).
class PhaseSimulation : public std::enable_shared_from_this<PhaseSimulation> {
 public:
  PhaseSimulation(SimNetwork& network, const PatternStart& start, Engine::Callback done)
      : network_(network), pattern_(network.pattern(start.pattern)), start_(start), done_(std::move(done)) {}

  /// Starts segment `next_segment_` of phase `phase_`: first the latencies, then the transfers. Edges inside
  /// nodes and edges between nodes proceed concurrently.
  void step() {
    Engine& engine = network_.engine();
    if (phase_ >= pattern_.phases.size()) return engine.at(engine.now(), std::move(done_));
    const std::size_t phase = phase_;
    const PhaseLoad& load = pattern_.phases[phase];
    const int segments = std::min(start_.segments, load.rounds);
    if (++next_segment_ >= segments) {
      ++phase_;
      next_segment_ = 0;
    }
    for (const EdgeKind kind : kEdgeKinds) active_transfers_ += load.of(kind).any ? 1 : 0;
    for (const EdgeKind kind : kEdgeKinds) {
      if (!load.of(kind).any) continue;
      const PhaseCost cost = phase_cost(load, kind, pattern_.placement, start_.buffer);
      engine.at(engine.now() + cost.fixed / segments,
                [self = shared_from_this(), phase, kind, bytes = cost.bytes / segments] {
                  self->transfer(phase, kind, bytes);
                });
    }
    if (active_transfers_ == 0) engine.at(engine.now(), [self = shared_from_this()] { self->step(); });
  }

 private:
  void transfer(std::size_t phase, EdgeKind kind, double bytes) {
    const auto arrived = [self = shared_from_this()] {
      if (--self->active_transfers_ == 0) self->step();
    };
    if (network_.fidelity() == Fidelity::coupled) {
      return network_.start_merged_flow(network_.phase_links(start_.pattern, phase, kind), {bytes}, arrived);
    }
    std::vector<Edge> edges;
    int largest = 1;
    for (const Edge& edge : *pattern_.schedule->phases[phase].edges) {
      if (kind_of(edge, pattern_.placement) != kind) continue;
      largest = std::max(largest, edge.chunks);
      edges.push_back(edge);
    }
    active_transfers_ += static_cast<int>(edges.size()) - 1;
    for (const Edge& edge : edges) {
      network_.start_flow(network_.ends(pattern_, edge), network_.edge_links(pattern_, edge),
                          {bytes * edge.chunks / largest}, arrived);
    }
  }

  SimNetwork& network_;
  const Pattern& pattern_;
  PatternStart start_;
  Engine::Callback done_;
  std::size_t phase_ = 0;
  int next_segment_ = 0;
  int active_transfers_ = 0;
};

}  // namespace

PatternId SimNetwork::add(std::shared_ptr<const Schedule> schedule, Placement placement) {
  Pattern pattern{std::move(schedule), std::move(placement), {}};
  std::set<const void*> known;
  for (const Phase& phase : pattern.schedule->phases) {
    if (known.insert(phase.edges.get()).second)
      computed_routes_ += static_cast<std::int64_t>(phase.edges->size());
  }
  return add(std::move(pattern));
}

PatternId SimNetwork::add(Pattern pattern) {
  return patterns_.add(std::move(pattern));
}

const Pattern& SimNetwork::pattern(PatternId id) {
  Pattern& pattern = patterns_[id];
  if (pattern.phases.empty()) {
    pattern.phases = phase_loads(*pattern.schedule, pattern.placement, bandwidths_);
    set_most_loaded(pattern.phases, bandwidths_);
  }
  return pattern;
}

double SimNetwork::uncontended(PatternId id, Bytes buffer) {
  return uncontended_seconds(pattern(id).phases, pattern(id).placement, buffer);
}

double SimNetwork::latency(PatternId id, Bytes buffer) {
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

void SimNetwork::start() {
  sampled_ = modelled_ = 0;
  std::vector<BytesPerSecond> merged;
  if (fidelity_ == Fidelity::coupled) merged = merge();
  const bool coupled = fidelity_ == Fidelity::coupled, simgrid = sharing_ == LinkSharing::simgrid;
  messages_.reset();
  links_.reset();
  engine_ = std::make_unique<Engine>(simgrid && !coupled ? FlowLinks{bandwidths_} : FlowLinks{merged});
  if (!simgrid) {
    const int links = coupled ? static_cast<int>(merged.size()) : bandwidths_.size();
    links_.emplace(*engine_, links, [this, coupled, merged = std::move(merged)](int link) {
      return coupled ? merged[static_cast<std::size_t>(link)] : bandwidths_[link];
    });
    links_->limit_work(max_work_);
  }
  if (fidelity_ != Fidelity::message) return;
  place_messages();
  messages_.emplace(*engine_, links_ ? &*links_ : nullptr);
}

void SimNetwork::place_messages() {
  if (use_lower_bounds_ || placed_.size() == patterns_.size()) return;
  placed_.clear();
  std::vector<MessagePattern*> all;
  for (const Pattern& pattern : patterns_)
    all.push_back(&placed_.emplace_back(*pattern.schedule, pattern.placement));
  if (patterns_only_ && links_) keep_narrowest_links(all, bandwidths_);
  if (one_at_a_time_ && links_) leave_out_unshared_links(all, bandwidths_);
}

/// Merges the links of all phases and returns the bandwidths of the merged links.
std::vector<BytesPerSecond> SimNetwork::merge() {
  std::vector<const std::vector<LinkWeight>*> uses;
  first_phase_.clear();
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    first_phase_.push_back(uses.size());
    for (const PhaseLoad& phase : pattern(PatternId(i)).phases) {
      for (const EdgesLoad& edges : phase.edges) uses.push_back(&edges.links);
    }
  }
  LinkClasses merged;
  if (!use_lower_bounds_) merged = merge_links(uses, [this](int link) { return bandwidths_[link]; });
  class_links_ = std::move(merged.patterns);
  return std::move(merged.bandwidths);
}

EndpointPair SimNetwork::ends(const Pattern& pattern, const Edge& edge) {
  return {pattern.placement.endpoints[static_cast<std::size_t>(edge.source)],
          pattern.placement.endpoints[static_cast<std::size_t>(edge.target)]};
}

std::vector<int> SimNetwork::edge_links(const Pattern& pattern, const Edge& edge) const {
  std::vector<int> links;
  const auto [from, to] = ends(pattern, edge);
  pattern.placement.topology->route(from, to, links);
  return links;
}

const std::vector<int>& SimNetwork::phase_links(PatternId pattern, std::size_t phase, EdgeKind kind) const {
  return class_links_[first_phase_[pattern] + 2 * phase + static_cast<std::size_t>(kind)];
}

void SimNetwork::start_flow(EndpointPair ends, std::span<const int> links, Bytes size,
                            Engine::Callback&& done) {
  if (links_) return links_->start_flow(links, size, std::move(done));
  engine_->start_flow(ends, size, std::move(done));
}

void SimNetwork::start_merged_flow(const std::vector<int>& links, Bytes size, Engine::Callback&& done) {
  if (links_) return links_->start_flow(links, size, std::move(done));
  engine_->start_flow(links, size, std::move(done));
}

std::optional<double> SimNetwork::known_seconds(PatternId id, Bytes buffer) {
  if (use_lower_bounds_) {
    const auto [bound, is_new] = lower_bounds_.try_emplace({id, buffer.value}, 0);
    if (is_new) bound->second = lower_bound_seconds(pattern(id), buffer, bandwidths_);
    return bound->second;
  }
  const auto found = known_.find({id, buffer.value});
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void SimNetwork::start_pattern(PatternId pattern, Bytes buffer, int segments, Engine::Callback done) {
  if (const auto known = known_seconds(pattern, buffer)) {
    ++(lower_bounds_.contains({pattern, buffer.value}) ? modelled_ : sampled_);
    return engine_->at(engine_->now() + *known, std::move(done));
  }
  if (fidelity_ == Fidelity::message) {
    messages_->simulate(placed_[pattern.index()], buffer, std::move(done));
  } else {
    std::make_shared<PhaseSimulation>(*this, PatternStart{pattern, buffer, segments}, std::move(done))
        ->step();
  }
}

}  // namespace stepcast
