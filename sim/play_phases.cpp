#include <memory>

#include "sim/play.hpp"

namespace stepcast {
namespace {

class PhasesPlay : public std::enable_shared_from_this<PhasesPlay> {
 public:
  PhasesPlay(SimNetwork& network, const PhasePlay& what, Engine::Callback done)
      : network_(network), pattern_(network.pattern(what.pattern)), what_(what), done_(std::move(done)) {}

  /// Segment `next_` of phase `phase_`: latencies first, then bytes; edges inside nodes beside those between.
  void step() {
    Engine& engine = network_.engine();
    if (phase_ >= pattern_.phases.size()) return engine.at(engine.now(), std::move(done_));
    const std::size_t phase = phase_;
    const PhaseUsage& usage = pattern_.phases[phase];
    const int segments = std::min(what_.segments, usage.rounds);
    if (++next_ >= segments) {
      ++phase_;
      next_ = 0;
    }
    for (const EdgeKind kind : kEdgeKinds) under_way_ += usage.of(kind).any ? 1 : 0;
    for (const EdgeKind kind : kEdgeKinds) {
      if (!usage.of(kind).any) continue;
      const PhaseCost cost = phase_cost(usage, kind, pattern_.placement, what_.buffer);
      engine.at(engine.now() + cost.fixed / segments,
                [self = shared_from_this(), phase, kind, bytes = cost.bytes / segments] {
                  self->transfer(phase, kind, bytes);
                });
    }
    if (under_way_ == 0) engine.at(engine.now(), [self = shared_from_this()] { self->step(); });
  }

 private:
  void transfer(std::size_t phase, EdgeKind kind, double bytes) {
    const auto arrived = [self = shared_from_this()] {
      if (--self->under_way_ == 0) self->step();
    };
    if (network_.form() == Form::coupled) {
      return network_.engine().start_flow(network_.phase_links(what_.pattern, phase, kind), {bytes}, arrived);
    }
    std::vector<Edge> edges;
    int largest = 1;
    for (const Edge& edge : *pattern_.schedule->phases[phase].edges) {
      if (kind_of(edge, pattern_.placement) != kind) continue;
      largest = std::max(largest, edge.chunks);
      edges.push_back(edge);
    }
    under_way_ += static_cast<int>(edges.size()) - 1;
    for (const Edge& edge : edges) {
      network_.engine().start_flow(network_.edge_links(pattern_, edge), {bytes * edge.chunks / largest},
                                   arrived);
    }
  }

  SimNetwork& network_;
  const Pattern& pattern_;
  PhasePlay what_;
  Engine::Callback done_;
  std::size_t phase_ = 0;
  int next_ = 0;
  int under_way_ = 0;
};

}  // namespace

void play_phases(SimNetwork& network, const PhasePlay& what, Engine::Callback done) {
  std::make_shared<PhasesPlay>(network, what, std::move(done))->step();
}

}  // namespace stepcast
