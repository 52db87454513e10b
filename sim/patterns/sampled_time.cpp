#include "sim/patterns/sampled_time.hpp"

#include <algorithm>
#include <memory>

namespace stepcast {
namespace {

/// One collective that is being simulated message by message. A rank enters a round when its sends and
/// receives of all earlier rounds are done; a message starts when both of its ranks have entered its round.
class MessageSimulation : public std::enable_shared_from_this<MessageSimulation> {
 public:
  MessageSimulation(const MessageNetwork& network, const PlacedCollective& collective, Engine::Callback done)
      : network_(network), collective_(collective), done_(std::move(done)) {
    const auto ranks = static_cast<std::size_t>(collective.schedule.ranks);
    ranks_.resize(ranks);
    for (const Phase& phase : collective.schedule.phases) {
      phases_.emplace_back();
      phases_.back().ends.assign(phase.edges->size(), 0);
      phases_.back().edges_of.resize(ranks);
      for (std::size_t e = 0; e < phase.edges->size(); ++e) {
        const Edge& edge = (*phase.edges)[e];
        phases_.back().edges_of[static_cast<std::size_t>(edge.source)].push_back(e);
        phases_.back().edges_of[static_cast<std::size_t>(edge.target)].push_back(e);
      }
    }
    unfinished_ranks_ = ranks;
  }

  void start() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) advance(rank);
  }

 private:
  struct Rank {
    std::size_t phase = 0;
    int round = -1;
    int outstanding = 0;  ///< sends and receives of the present round that are not done
  };
  struct PhaseState {
    std::vector<int> ends;                           ///< by edge: how many of its two ranks are in its round
    std::vector<std::vector<std::size_t>> edges_of;  ///< by rank: indices of its edges
  };

  const Phase& phase(std::size_t index) const { return collective_.schedule.phases[index]; }

  static bool active(const Phase& phase, const Edge& edge, int round) {
    return round >= edge.delay && round < edge.delay + phase.active;
  }

  /// Moves the rank to its next round in which it sends or receives.
  void advance(std::size_t index) {
    Rank& rank = ranks_[index];
    while (rank.outstanding == 0) {
      if (++rank.round >= (rank.phase < phases_.size() ? phase(rank.phase).rounds : 0)) {
        rank.round = -1;
        if (++rank.phase >= phases_.size()) return finish_rank();
        continue;
      }
      enter_round(index);
    }
  }

  void enter_round(std::size_t index) {
    Rank& rank = ranks_[index];
    PhaseState& state = phases_[rank.phase];
    for (const std::size_t e : state.edges_of[index]) {
      if (!active(phase(rank.phase), (*phase(rank.phase).edges)[e], rank.round)) continue;
      ++rank.outstanding;
      if (++state.ends[e] == 2) {
        state.ends[e] = 0;
        send(rank.phase, e);
      }
    }
  }

  RouteCache::Route route_of(const Edge& edge) {
    const auto& endpoints = collective_.placement.endpoints;
    return network_.routes.between(endpoints[static_cast<std::size_t>(edge.source)],
                                   endpoints[static_cast<std::size_t>(edge.target)]);
  }

  void send(std::size_t phase_index, std::size_t e) {
    const Edge& edge = (*phase(phase_index).edges)[e];
    const Platform& platform = *collective_.placement.platform;
    const RouteCache::Route route = route_of(edge);
    const double bytes =
        collective_.buffer.value * phase(phase_index).unit * edge.chunks / collective_.schedule.parts;
    const MessageCost& cost =
        message_cost(route.local ? platform.local_message_costs : platform.message_costs, {bytes});
    const double latency = collective_.placement.latency_factor * (route.latency + cost.overhead.value);
    const Bytes size{bytes / cost.bandwidth_factor};
    network_.engine.at(network_.engine.now() + latency, [self = shared_from_this(), phase_index, e, size] {
      const Edge& sent = (*self->phase(phase_index).edges)[e];
      self->network_.start_flow(self->route_of(sent).links, size, [self, sent] { self->arrive(sent); });
    });
  }

  void arrive(const Edge& edge) {
    for (const int end : {edge.source, edge.target}) {
      const auto rank = static_cast<std::size_t>(end);
      if (--ranks_[rank].outstanding == 0) advance(rank);
    }
  }

  void finish_rank() {
    if (--unfinished_ranks_ == 0) network_.engine.at(network_.engine.now(), std::move(done_));
  }

  MessageNetwork network_;
  PlacedCollective collective_;
  Engine::Callback done_;
  std::vector<Rank> ranks_;
  std::vector<PhaseState> phases_;
  std::size_t unfinished_ranks_;
};

}  // namespace

void MessageNetwork::start_flow(std::span<const int> over, Bytes size, Engine::Callback&& done) const {
  if (links != nullptr) return links->start_flow(over, size, std::move(done));
  engine.start_flow({over.begin(), over.end()}, size, std::move(done));
}

void simulate_messages(const MessageNetwork& network, const PlacedCollective& collective,
                       Engine::Callback done) {
  std::make_shared<MessageSimulation>(network, collective, std::move(done))->start();
}

namespace {

constexpr int kFirstRounds = 8;
constexpr double kSettledError = 0.001;

int longest_phase(const Schedule& schedule) {
  int longest = 1;
  for (const Phase& phase : schedule.phases) longest = std::max(longest, phase.active);
  return longest;
}

/// The schedule with its longest phases shortened to `rounds` rounds; the size of messages does not change.
Schedule shortened(const Schedule& schedule, int rounds) {
  Schedule shorter = schedule;
  const int longest = longest_phase(schedule);
  for (Phase& phase : shorter.phases) {
    if (phase.active != longest) continue;
    phase.rounds -= longest - rounds;
    phase.active = rounds;
  }
  return shorter;
}

/// Simulated duration of all messages of a schedule [s]; nothing if the simulation needs more than
/// `work_left`.
std::optional<double> simulated_seconds(const Schedule& schedule, const Pattern& pattern, Bytes buffer,
                                        const LinkBandwidths& bandwidths, double& work_left) {
  const Placement& placement = pattern.placement;
  if (message_count(schedule) > work_left) return std::nullopt;
  Engine engine({});
  MaxMinSharing links(engine, bandwidths.size(), [&](int link) { return bandwidths[link]; });
  links.limit_work(static_cast<std::int64_t>(work_left));
  RouteCache routes(*placement.platform, *placement.topology);
  double end = 0;
  simulate_messages({engine, routes, &links}, {schedule, placement, buffer}, [&] { end = engine.now(); });
  try {
    engine.run();
  } catch (const MaxMinSharing::TooMuchWork&) {
    return std::nullopt;
  }
  work_left -= static_cast<double>(links.work());
  return end;
}

}  // namespace

double sampled_messages(const Schedule& schedule) {
  const int longest = longest_phase(schedule), rounds = 7 * kFirstRounds;  // 8 + 16 + 32
  return message_count(longest <= rounds ? schedule : shortened(schedule, rounds));
}

std::optional<SampledTime> sampled_time(const Pattern& pattern, Bytes buffer,
                                        const LinkBandwidths& bandwidths, double max_work) {
  SampledTime sampled;
  bool settled = false;
  double work_left = max_work;
  const int longest = longest_phase(*pattern.schedule);
  double seconds = 0, previous_per_round = 0;
  for (int rounds = longest <= 4 * kFirstRounds ? longest : kFirstRounds;; rounds *= 2) {
    const bool all = 2 * rounds > longest;
    const Schedule schedule = all ? *pattern.schedule : shortened(*pattern.schedule, rounds);
    const auto simulated = simulated_seconds(schedule, pattern, buffer, bandwidths, work_left);
    if (!simulated) return settled ? std::optional(sampled) : std::nullopt;
    const double total = *simulated;
    sampled.messages += message_count(schedule);
    sampled.work = max_work - work_left;
    if (all) return SampledTime{total, 0, sampled.messages, sampled.work};
    const double per_round = (total - seconds) / (rounds / 2);
    if (rounds >= 4 * kFirstRounds) {
      const int left = longest - rounds;
      sampled.seconds = total + left * per_round;
      sampled.error = left * std::abs(per_round - previous_per_round) / sampled.seconds;
      if (sampled.error <= kSettledError) return sampled;
      settled = true;
    }
    seconds = total;
    previous_per_round = per_round;
  }
}

}  // namespace stepcast
