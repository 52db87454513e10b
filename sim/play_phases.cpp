#include <memory>

#include "sim/play.hpp"

namespace stepcast {
namespace {

class PhasesPlay : public std::enable_shared_from_this<PhasesPlay> {
 public:
  PhasesPlay(SimNetwork& network, const PhasePlay& what, Engine::Callback done)
      : network_(network), pattern_(network.pattern(what.pattern)), what_(what), done_(std::move(done)) {}

  /// Segment `next_` of the collective: latencies first, then bytes.
  void step() {
    const std::size_t phase = next_ / static_cast<std::size_t>(what_.segments);
    Engine& engine = network_.engine();
    if (phase >= pattern_.phases.size()) return engine.at(engine.now(), std::move(done_));
    ++next_;
    const PhaseUsage& usage = pattern_.phases[phase];
    const RoundCost cost = round_cost(usage, pattern_.placement, what_.buffer);
    const double delay = fixed_seconds(usage, cost) / what_.segments;
    const double bytes = usage.active * cost.bytes / what_.segments;
    engine.at(engine.now() + delay,
              [self = shared_from_this(), phase, bytes] { self->transfer(phase, bytes); });
  }

 private:
  void transfer(std::size_t phase, double bytes) {
    const auto arrived = [self = shared_from_this()] {
      if (--self->in_flight_ == 0) self->step();
    };
    if (network_.form() == Form::coupled) {
      in_flight_ = 1;
      return network_.engine().start_flow(network_.phase_links(what_.pattern, phase), {bytes}, arrived);
    }
    const auto& edges = *pattern_.schedule->phases[phase].edges;
    int largest = 1;
    for (const Edge& edge : edges) largest = std::max(largest, edge.chunks);
    in_flight_ = static_cast<int>(edges.size());
    for (const Edge& edge : edges) {
      network_.engine().start_flow(network_.edge_links(pattern_, edge), {bytes * edge.chunks / largest},
                                   arrived);
    }
  }

  SimNetwork& network_;
  const Pattern& pattern_;
  PhasePlay what_;
  Engine::Callback done_;
  std::size_t next_ = 0;
  int in_flight_ = 0;
};

}  // namespace

void play_phases(SimNetwork& network, const PhasePlay& what, Engine::Callback done) {
  std::make_shared<PhasesPlay>(network, what, std::move(done))->step();
}

}  // namespace stepcast
