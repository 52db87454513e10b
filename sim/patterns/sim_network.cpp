#include "sim/patterns/sim_network.hpp"

#include <algorithm>
#include <utility>

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
      : network_(network),
        pattern_(network.patterns().pattern(start.pattern)),
        start_(start),
        done_(std::move(done)) {}

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
    active_transfers_ += std::ssize(edges) - 1;
    std::vector<int> links;
    for (const Edge& edge : edges) {
      const EndpointPair ends{pattern_.placement.endpoints[edge.source],
                              pattern_.placement.endpoints[edge.target]};
      links.clear();
      pattern_.placement.topology->route(ends.from, ends.to, links);
      network_.start_flow(ends, links, {bytes * edge.chunks / largest}, arrived);
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

SimNetwork::SimNetwork(const NetworkPatterns& patterns, const LinkOptions& options)
    : patterns_(patterns), options_(options) {
  const LinkBandwidths& bandwidths = patterns.bandwidths();
  const bool coupled = options.fidelity == Fidelity::coupled;
  std::vector<BytesPerSecond> merged;
  if (coupled && !options.lower_bounds) merged = patterns.merged_links().bandwidths;
  if (options.sharing == LinkSharing::simgrid) {
    engine_ = std::make_unique<Engine>(coupled ? FlowLinks{std::move(merged)} : FlowLinks{bandwidths});
  } else {
    engine_ = std::make_unique<Engine>(std::vector<BytesPerSecond>{});
    const int links = coupled ? merged.size() : bandwidths.size();
    links_.emplace(*engine_, links, [&bandwidths, coupled, merged = std::move(merged)](int link) {
      return coupled ? merged[link] : bandwidths[link];
    });
    links_->limit_work(options.max_work);
    if (bandwidths.platform().has_adaptive_routes()) routes_.emplace(bandwidths, *links_);
  }
  if (options.fidelity != Fidelity::message || options.lower_bounds) return;
  place_messages();
  messages_.emplace(*engine_, links_ ? &*links_ : nullptr, routes_ ? &*routes_ : nullptr);
}

void SimNetwork::place_messages() {
  std::vector<MessagePattern*> all;
  for (const Pattern& pattern : patterns_.placed())
    all.push_back(&placed_.emplace_back(*pattern.schedule, pattern.placement));
  if (!links_ || routes_ || !options_.patterns_only) return;
  keep_narrowest_links(all, patterns_.bandwidths());
  if (options_.one_at_a_time) leave_out_unshared_links(all, patterns_.bandwidths());
}

const std::vector<int>& SimNetwork::phase_links(PatternId pattern, std::size_t phase, EdgeKind kind) const {
  const NetworkPatterns::MergedLinks& merged = patterns_.merged_links();
  return merged.of_phases[merged.first_phase[pattern] + 2 * phase + ordinal(kind)];
}

void SimNetwork::start_flow(EndpointPair ends, std::span<const int> links, Bytes size,
                            Engine::Callback&& done) {
  if (routes_) links = routes_->best(ends.from, ends.to, links);
  if (links_) return links_->start_flow(links, size, std::move(done));
  engine_->start_flow(ends, size, std::move(done));
}

void SimNetwork::start_merged_flow(const std::vector<int>& links, Bytes size, Engine::Callback&& done) {
  if (links_) return links_->start_flow(links, size, std::move(done));
  engine_->start_flow(links, size, std::move(done));
}

void SimNetwork::start_pattern(PatternId pattern, Bytes buffer, int segments, Engine::Callback done) {
  const auto known = patterns_.known(pattern, buffer);
  if (known) ++(known->modelled ? modelled_ : sampled_);
  if (known || options_.lower_bounds) {
    const double seconds = options_.lower_bounds ? patterns_.lower_bound(pattern, buffer) : known->seconds;
    return engine_->at(engine_->now() + seconds, std::move(done));
  }
  if (options_.fidelity == Fidelity::message) {
    messages_->simulate(placed_[pattern.index()], buffer, std::move(done));
  } else {
    std::make_shared<PhaseSimulation>(*this, PatternStart{pattern, buffer, segments}, std::move(done))
        ->step();
  }
}

}  // namespace stepcast
