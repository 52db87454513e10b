#include "sim/patterns/message_simulation.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/memory.hpp"
#include "core/random.hpp"

namespace stepcast {
namespace {

/// The edges of each rank, in compressed rows.
void set_edges_of_ranks(MessagePattern::Edges& edges, const std::vector<Edge>& list, int ranks) {
  auto& first = edges.first_of_rank;
  first.assign(ranks + 1, 0);
  for (const Edge& edge : list) {
    ++first[edge.source + 1];
    ++first[edge.target + 1];
  }
  for (std::size_t rank = 1; rank < first.size(); ++rank) first[rank] += first[rank - 1];
  edges.of_rank.resize(2 * list.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t e = 0; e < list.size(); ++e) {
    edges.of_rank[next[list[e].source]++] = e;
    edges.of_rank[next[list[e].target]++] = e;
  }
}

}  // namespace

MessagePattern::MessagePattern(const Schedule& of, const Placement& placed)
    : schedule(of), placement(placed) {
  std::map<const void*, std::uint32_t> known;
  std::vector<int> route;
  std::uint32_t count = 0;
  for (const Phase& phase : schedule.phases) {
    first_edge.push_back(count);
    count += phase.edges->size();
    const auto [found, is_new] = known.try_emplace(phase.edges.get(), edges.size());
    edges_of_phase.push_back(found->second);
    if (!is_new) continue;
    Edges& added = edges.emplace_back();
    set_edges_of_ranks(added, *phase.edges, schedule.ranks);
    for (const Edge& edge : *phase.edges) {
      const int from = placement.endpoints[edge.source];
      const int to = placement.endpoints[edge.target];
      route.clear();
      placement.topology->route(from, to, route);
      added.routes.push_back({placement.latency_factor * placement.topology->latency_of(route).value,
                              static_cast<std::uint32_t>(links.size()),
                              static_cast<std::uint16_t>(route.size()),
                              kind_of(edge, placement) == EdgeKind::inside, edge.chunks});
      links.insert(links.end(), route.begin(), route.end());
    }
  }
  first_edge.push_back(count);
}

namespace {

/// One edge in one phase of a pattern. Patterns and phases are numbered from 1, phases over all patterns.
struct PlacedEdge {
  std::uint32_t pattern, phase;
  const Edge& edge;
  int from, to;  ///< endpoints
};

/// Calls `visit(edge, links, route)` for each edge in each phase of all patterns; `links` holds the links of
/// its route.
template <class Visit>
void for_each_route(std::span<MessagePattern* const> patterns, const Visit& visit) {
  std::uint32_t number = 0, phases = 0;
  for (MessagePattern* pattern : patterns) {
    ++number;
    const auto& endpoints = pattern->placement.endpoints;
    for (std::size_t phase = 0; phase < pattern->schedule.phases.size(); ++phase) {
      ++phases;
      const auto& list = *pattern->schedule.phases[phase].edges;
      MessagePattern::Edges& edges = pattern->edges[pattern->edges_of_phase[phase]];
      for (std::size_t e = 0; e < list.size(); ++e) {
        visit(PlacedEdge{number, phases, list[e], endpoints[list[e].source], endpoints[list[e].target]},
              pattern->links, edges.routes[e]);
      }
    }
  }
}

}  // namespace

void keep_narrowest_links(std::span<MessagePattern* const> patterns, const LinkBandwidths& bandwidths) {
  // The sum of the hashes of all pairs whose messages use a link. Links of equal sums are used alike.
  ZeroedArray<std::uint64_t> users(bandwidths.size());
  for_each_route(patterns, [&](const PlacedEdge& of, const std::vector<int>& links, const auto& route) {
    const std::uint64_t pair = mixed_hash(of.from + 1, of.to);
    for (std::size_t i = route.first; i < route.first + route.count; ++i) users[links[i]] += pair;
  });
  const auto users_of = [&](int link) { return users[link]; };
  for_each_route(patterns, [&](const PlacedEdge&, std::vector<int>& links, auto& route) {
    std::uint16_t kept = 0;
    for (std::uint16_t i = 0; i < route.count; ++i) {
      const int link = links[route.first + i];
      std::uint16_t same = 0;
      while (same < kept && users_of(links[route.first + same]) != users_of(link)) ++same;
      int& other = links[route.first + same];
      if (same == kept) {
        other = link;
        ++kept;
      } else if (bandwidths[link].value < bandwidths[other].value ||
                 (bandwidths[link].value == bandwidths[other].value && link < other)) {
        other = link;
      }
    }
    route.count = kept;
  });
}

namespace {

/// The messages that use a link, which are one at a time if they go from one rank to one other rank of a
/// pattern in different phases: a rank enters a phase when its messages of the phase before are done.
struct LinkUser {
  std::uint32_t pattern;  ///< 0: none yet
  std::uint32_t phase;    ///< the last one
  int source, target;     ///< ranks
  bool several_at_once;

  void add(const PlacedEdge& used) {
    if (pattern == 0) {
      *this = {used.pattern, used.phase, used.edge.source, used.edge.target, false};
      return;
    }
    const bool same = pattern == used.pattern && source == used.edge.source && target == used.edge.target;
    several_at_once = several_at_once || !same || phase == used.phase;
    phase = used.phase;
  }
};

}  // namespace

void leave_out_unshared_links(std::span<MessagePattern* const> patterns, const LinkBandwidths& bandwidths) {
  ZeroedArray<LinkUser> users(bandwidths.size());
  const auto user_of = [&](int link) -> LinkUser& { return users[link]; };
  for_each_route(patterns, [&](const PlacedEdge& used, const std::vector<int>& links, const auto& route) {
    for (std::size_t i = route.first; i < route.first + route.count; ++i) user_of(links[i]).add(used);
  });
  for_each_route(patterns, [&](const PlacedEdge&, std::vector<int>& links, auto& route) {
    std::uint16_t kept = 0;
    for (std::size_t i = route.first; i < route.first + route.count; ++i) {
      if (user_of(links[i]).several_at_once) {
        links[route.first + kept++] = links[i];
      } else {
        route.max_rate = std::min(route.max_rate, bandwidths[links[i]].value);
      }
    }
    route.count = kept;
  });
}

/// One collective that is being simulated message by message.
class MessageNetwork::Collective {
 public:
  explicit Collective(MessageNetwork& network) : network_(network) {}

  void start(const MessagePattern& pattern, Bytes buffer, Engine::Callback&& done) {
    pattern_ = &pattern;
    buffer_ = buffer;
    done_ = std::move(done);
    ranks_.assign(pattern.schedule.ranks, {});
    ready_.assign(pattern.first_edge.back(), 0);
    phases_.clear();
    for (std::size_t i = 0; i < pattern.schedule.phases.size(); ++i) phases_.push_back(phase_state(i));
    unfinished_ranks_ = ranks_.size();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) advance(rank);
  }

  /// The latency of a message is over.
  void transfer(std::uint32_t phase, std::uint32_t edge) {
    PhaseState& present = phases_[phase];
    const MessagePattern::Route& route = present.routes[edge];
    const Bytes size{cost(present, route).bytes};
    const FlowEnd arrived = arrival(phase, edge);
    const auto endpoint = [this](int rank) { return pattern_->placement.endpoints[rank]; };
    const EndpointPair ends{endpoint(present.list[edge].source), endpoint(present.list[edge].target)};
    std::span<const int> links = pattern_->links_of(route);
    if (network_.routes_ != nullptr) links = network_.routes_->best(ends.from, ends.to, links);
    if (network_.links_ != nullptr) return network_.links_->start_flow(links, size, arrived, route.max_rate);
    network_.engine_.start_flow(ends, size, arrived);
  }

 private:
  struct Rank {
    std::uint32_t phase = 0;
    int round = -1;
    int outstanding = 0;  ///< sends and receives of the present round that are not done
  };
  /// Cost of a message of a phase.
  struct Cost {
    int chunks = -1;      ///< of the edge that it was computed for
    double bytes = 0;     ///< divided by MessageCost::bandwidth_factor [B]
    double overhead = 0;  ///< times Placement::latency_factor [s]
  };
  /// All data that the messages of a phase need.
  struct PhaseState {
    const Phase* phase;
    const Edge* list;
    const MessagePattern::Route* routes;
    const std::uint32_t *first_of_rank, *of_rank;
    std::uint8_t* ready;          ///< by edge: whether one of its two ranks is in its round
    bool every_round;             ///< all edges are active in all rounds
    std::array<Cost, 2> costs{};  ///< between nodes and inside
  };

  PhaseState phase_state(std::size_t index) {
    const Phase& phase = pattern_->schedule.phases[index];
    const MessagePattern::Edges& edges = pattern_->edges[pattern_->edges_of_phase[index]];
    const bool every_round =
        phase.active == phase.rounds &&
        std::ranges::all_of(*phase.edges, [](const Edge& edge) { return edge.delay == 0; });
    return {&phase,
            phase.edges->data(),
            edges.routes.data(),
            edges.first_of_rank.data(),
            edges.of_rank.data(),
            ready_.data() + pattern_->first_edge[index],
            every_round};
  }

  const Cost& cost(PhaseState& present, const MessagePattern::Route& route) {
    Cost& known = present.costs[route.local ? 1 : 0];
    if (known.chunks == route.chunks) return known;
    const Platform& platform = *pattern_->placement.platform;
    const double bytes = buffer_.value * present.phase->unit * route.chunks / pattern_->schedule.parts;
    const MessageCost& row =
        message_cost(route.local ? platform.local_message_costs : platform.message_costs, {bytes});
    known = {route.chunks, bytes / row.bandwidth_factor,
             pattern_->placement.latency_factor * row.overhead.value};
    return known;
  }

  /// Moves the rank to its next round in which it sends or receives.
  void advance(std::size_t index) {
    Rank& rank = ranks_[index];
    while (rank.outstanding == 0) {
      if (++rank.round >= (rank.phase < phases_.size() ? phases_[rank.phase].phase->rounds : 0)) {
        rank.round = -1;
        if (++rank.phase >= phases_.size()) return finish_rank();
        continue;
      }
      enter_round(index);
    }
  }

  void enter_round(std::size_t index) {
    Rank& rank = ranks_[index];
    PhaseState& present = phases_[rank.phase];
    const std::uint32_t last = present.first_of_rank[index + 1];
    for (std::uint32_t i = present.first_of_rank[index]; i < last; ++i) {
      const std::uint32_t edge = present.of_rank[i];
      if (!is_active(present, edge, rank.round)) continue;
      ++rank.outstanding;
      present.ready[edge] ^= 1U;
      if (present.ready[edge] == 0) send(rank.phase, edge);
    }
  }

  static bool is_active(const PhaseState& present, std::uint32_t edge, int round) {
    if (present.every_round) return true;
    const int delay = present.list[edge].delay;
    return round >= delay && round < delay + present.phase->active;
  }

  void send(std::uint32_t phase, std::uint32_t edge) {
    const MessagePattern::Route& route = phases_[phase].routes[edge];
    const Cost& message = cost(phases_[phase], route);
    const double start = network_.engine_.now() + (route.latency + message.overhead);
    if (route.count > 0 || route.max_rate == MessagePattern::kUnlimited)
      return network_.start_at(start, {this, phase, edge});
    network_.links_->start_alone(start, {message.bytes}, route.max_rate, arrival(phase, edge));
  }

  FlowEnd arrival(std::uint32_t phase, std::uint32_t edge) {
    return {call_arrive, this, std::uint64_t{phase} << 32U | edge};
  }

  static void call_arrive(void* self, std::uint64_t phase_and_edge) {
    auto& collective = *static_cast<Collective*>(self);
    const PhaseState& present = collective.phases_[phase_and_edge >> 32U];
    const Edge& edge = present.list[phase_and_edge & 0xffffffffU];
    collective.message_done(edge.source);
    collective.message_done(edge.target);
  }

  void message_done(std::size_t rank) {
    if (--ranks_[rank].outstanding == 0) advance(rank);
  }

  void finish_rank() {
    if (--unfinished_ranks_ > 0) return;
    network_.engine_.at(network_.engine_.now(), [this] {
      Engine::Callback done = std::move(done_);
      network_.idle_.push_back(this);
      done();
    });
  }

  MessageNetwork& network_;
  const MessagePattern* pattern_ = nullptr;
  Bytes buffer_;
  Engine::Callback done_;
  std::vector<Rank> ranks_;
  std::vector<std::uint8_t> ready_;  ///< see PhaseState::ready, for all phases
  std::vector<PhaseState> phases_;
  std::size_t unfinished_ranks_ = 0;
};

MessageNetwork::MessageNetwork(Engine& engine, MaxMinSharing* links, AdaptiveRoutes* routes)
    : engine_(engine), links_(links), routes_(routes) {
  open_.fill(kNoBatch);
}

MessageNetwork::~MessageNetwork() = default;

void MessageNetwork::simulate(const MessagePattern& pattern, Bytes buffer, Engine::Callback&& done) {
  if (idle_.empty()) {
    collectives_.push_back(std::make_unique<Collective>(*this));
    idle_.push_back(collectives_.back().get());
  }
  Collective* collective = idle_.back();
  idle_.pop_back();
  collective->start(pattern, buffer, std::move(done));
}

std::uint32_t MessageNetwork::batch_at(double date) {
  for (const std::uint32_t open : open_) {
    if (open != kNoBatch && batches_[open].date == date) return open;
  }
  if (free_batches_.empty()) {
    free_batches_.push_back(batches_.size());
    batches_.emplace_back();
  }
  const std::uint32_t number = free_batches_.back();
  free_batches_.pop_back();
  batches_[number].date = date;
  open_[next_open_++ % kOpenBatches] = number;
  engine_.at(date, [this, number] { start_batch(number); });
  return number;
}

void MessageNetwork::start_at(double date, const Sent& message) {
  if (last_ == kNoBatch || batches_[last_].date != date) last_ = batch_at(date);
  batches_[last_].messages.push_back(message);
}

void MessageNetwork::start_batch(std::uint32_t number) {
  std::ranges::replace(open_, number, kNoBatch);
  if (last_ == number) last_ = kNoBatch;
  for (const Sent& message : batches_[number].messages)
    message.collective->transfer(message.phase, message.edge);
  batches_[number].messages.clear();
  free_batches_.push_back(number);
}

}  // namespace stepcast
