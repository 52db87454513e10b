#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "core/memory.hpp"
#include "sim/patterns/pattern.hpp"

namespace stepcast {
namespace {

/// Durations in one round [s]; 0 if nothing is sent.
struct RoundSeconds {
  double least = INFINITY;  ///< of the fastest edge with the network to itself
  double most = 0;          ///< of the slowest edge or the most loaded link
};

constexpr double kRelativeTolerance = 1e-9;

bool nearly_equal(double a, double b) {
  return std::abs(a - b) <= kRelativeTolerance * std::max(a, b);
}

/// True if every rank sends as often as every other rank, and receives as often.
bool all_ranks_alike(const Phase& phase, int ranks) {
  std::vector<int> sends(ranks, 0), receives = sends;
  for (const Edge& edge : *phase.edges) {
    ++sends[edge.source];
    ++receives[edge.target];
  }
  const auto same = [&](int count) { return count == sends.front(); };
  return std::ranges::all_of(sends, same) && std::ranges::all_of(receives, same);
}

/// Inverse of the bandwidth of an edge on its most loaded link, while all edges of its kind are active [s/B]:
/// the least and the greatest over the edges of a phase.
struct InverseBandwidths {
  double least = INFINITY, most = 0;
  bool equal_sizes = true;
};

InverseBandwidths inverse_bandwidths(const Phase& phase, EdgeKind kind, const EdgesLoad& load,
                                     const Placement& placement, const LinkBandwidths& bandwidths) {
  ZeroedArray<double> seconds_per_byte(bandwidths.size());  // by link
  for (const LinkWeight& use : load.links)
    seconds_per_byte[use.link] = use.weight / bandwidths[use.link].value;
  InverseBandwidths inverse;
  std::vector<int> route;
  for (const Edge& edge : *phase.edges) {
    if (kind_of(edge, placement) != kind) continue;
    route.clear();
    placement.topology->route(placement.endpoints[edge.source], placement.endpoints[edge.target], route);
    double most = 0;
    for (const int link : route) most = std::max(most, seconds_per_byte[link]);
    inverse.least = std::min(inverse.least, most);
    inverse.most = std::max(inverse.most, most);
    inverse.equal_sizes = inverse.equal_sizes && edge.chunks == phase.edges->front().chunks;
  }
  return inverse;
}

}  // namespace

bool all_ranks_take_part(const Schedule& schedule) {
  std::map<const void*, bool> known;
  return std::ranges::all_of(schedule.phases, [&](const Phase& phase) {
    const auto [found, is_new] = known.try_emplace(phase.edges.get(), false);
    if (is_new) found->second = all_ranks_alike(phase, schedule.ranks);
    return found->second && phase.rounds == phase.active;
  });
}

bool kinds_share_links(const Pattern& pattern) {
  return std::ranges::any_of(pattern.phases, [](const PhaseLoad& phase) {
    const auto& inside = phase.of(EdgeKind::inside).links;
    auto other = phase.of(EdgeKind::between).links.begin();
    const auto end = phase.of(EdgeKind::between).links.end();
    return std::ranges::any_of(inside, [&](const LinkWeight& use) {  // both are sorted by link
      while (other != end && other->link < use.link) ++other;
      return other != end && other->link == use.link;
    });
  });
}

bool in_lock_step(const Pattern& pattern, const LinkBandwidths& bandwidths) {
  if (!all_ranks_take_part(*pattern.schedule)) return false;
  std::set<const void*> known;
  for (std::size_t i = 0; i < pattern.phases.size(); ++i) {
    const Phase& phase = pattern.schedule->phases[i];
    if (!known.insert(phase.edges.get()).second) continue;
    const bool between = pattern.phases[i].of(EdgeKind::between).any;
    if (between && pattern.phases[i].of(EdgeKind::inside).any) return false;
    const EdgeKind kind = between ? EdgeKind::between : EdgeKind::inside;
    const EdgesLoad& edges = pattern.phases[i].of(kind);
    const InverseBandwidths inverse = inverse_bandwidths(phase, kind, edges, pattern.placement, bandwidths);
    if (!inverse.equal_sizes || !nearly_equal(inverse.least, inverse.most)) return false;
    if (!nearly_equal(edges.latency, edges.least_latency)) return false;
  }
  return true;
}

namespace {

RoundSeconds round_seconds(const PhaseLoad& load, const Placement& placement, Bytes buffer) {
  RoundSeconds round;
  for (const EdgeKind kind : kEdgeKinds) {
    const EdgesLoad& edges = load.of(kind);
    if (!edges.any) continue;
    const PhaseCost cost = phase_cost(load, kind, placement, buffer);
    const double bytes = cost.bytes / load.active;
    const auto one = [&](double latency, double alone) {
      return placement.latency_factor * latency + cost.overhead + bytes * alone;
    };
    round.least = std::min(round.least, one(edges.least_latency, edges.fastest_alone));
    round.most = std::max({round.most, one(edges.latency, edges.alone_of_longest),
                           one(edges.latency_of_slowest, edges.slowest_alone), bytes * edges.most_loaded});
  }
  return round;
}

}  // namespace

double least_seconds(const Pattern& pattern, Bytes buffer) {
  double quickest = 0, longest_delay = 0;
  std::map<const void*, double>
      more;  // time beyond that of the fastest edge, summed over phases that share edges
  for (std::size_t i = 0; i < pattern.phases.size(); ++i) {
    const PhaseLoad& load = pattern.phases[i];
    const RoundSeconds round = round_seconds(load, pattern.placement, buffer);
    if (round.most == 0) continue;
    quickest += load.active * round.least;
    double& beyond = more[pattern.schedule->phases[i].edges.get()];
    beyond += load.active * (round.most - round.least);
    longest_delay = std::max(longest_delay, beyond);
  }
  return quickest + longest_delay;
}

namespace {

/// Sets the groups of a shape.
void set_groups(const Schedule& schedule, PatternShape& shape) {
  std::vector<std::size_t> leader(schedule.ranks);
  std::iota(leader.begin(), leader.end(), 0);
  const auto leader_of = [&](std::size_t rank) {
    while (leader[rank] != rank) rank = leader[rank] = leader[leader[rank]];
    return rank;
  };
  std::set<const void*> known;
  for (const Phase& phase : schedule.phases) {
    if (!known.insert(phase.edges.get()).second) continue;
    for (const Edge& edge : *phase.edges) {
      leader[leader_of(edge.source)] = leader_of(edge.target);
    }
  }
  shape.group_of_rank.assign(leader.size(), -1);
  for (std::size_t rank = 0; rank < leader.size(); ++rank) {
    int& number = shape.group_of_rank[leader_of(rank)];
    if (number < 0) number = shape.groups++;
    shape.group_of_rank[rank] = number;
  }
}

/// The cost of an edge that has the network to itself.
struct UncontendedEdge {
  const std::vector<MessageCost>* costs;
  double latency;           ///< [s]
  double seconds_per_byte;  ///< [s/B]
};

std::vector<UncontendedEdge> uncontended_edges(const Phase& phase, const Placement& placement,
                                               const LinkBandwidths& bandwidths) {
  std::vector<UncontendedEdge> edges;
  std::vector<int> route;
  for (const Edge& edge : *phase.edges) {
    route.clear();
    placement.topology->route(placement.endpoints[edge.source], placement.endpoints[edge.target], route);
    double seconds_per_byte = 0;
    for (const int link : route) seconds_per_byte = std::max(seconds_per_byte, 1 / bandwidths[link].value);
    const Platform& platform = *placement.platform;
    const bool inside = kind_of(edge, placement) == EdgeKind::inside;
    edges.push_back({inside ? &platform.local_message_costs : &platform.message_costs,
                     placement.latency_factor * placement.topology->latency_of(route).value,
                     seconds_per_byte});
  }
  return edges;
}

double uncontended_edge_seconds(const UncontendedEdge& edge, double bytes, double latency_factor) {
  const MessageCost& cost = message_cost(*edge.costs, {bytes});
  return edge.latency + latency_factor * cost.overhead.value +
         bytes / cost.bandwidth_factor * edge.seconds_per_byte;
}

/// The date at which the last rank of the fastest group ends, if every message had the network to itself. A
/// rank enters a phase when its messages of the phases before are done, and an edge sends its messages one
/// after the other.
double lower_bound_of_groups(const Pattern& pattern, Bytes buffer, const LinkBandwidths& bandwidths,
                             const PatternShape& shape) {
  std::vector<double> entered(shape.group_of_rank.size(), 0), done;  // by rank
  std::map<const void*, std::vector<UncontendedEdge>> alone;
  for (const Phase& phase : pattern.schedule->phases) {
    const auto [found, is_new] = alone.try_emplace(phase.edges.get());
    if (is_new) found->second = uncontended_edges(phase, pattern.placement, bandwidths);
    done = entered;
    for (std::size_t i = 0; i < phase.edges->size(); ++i) {
      const Edge& edge = (*phase.edges)[i];
      const std::size_t source = edge.source, target = edge.target;
      const double bytes = buffer.value * phase.unit * edge.chunks / pattern.schedule->parts;
      const double seconds =
          uncontended_edge_seconds(found->second[i], bytes, pattern.placement.latency_factor);
      const double end = std::max(entered[source], entered[target]) + phase.active * seconds;
      done[source] = std::max(done[source], end);
      done[target] = std::max(done[target], end);
    }
    entered.swap(done);
  }
  std::vector<double> ends(shape.groups, 0);
  for (std::size_t rank = 0; rank < entered.size(); ++rank) {
    double& end = ends[shape.group_of_rank[rank]];
    end = std::max(end, entered[rank]);
  }
  double least = INFINITY;
  for (const double end : ends) {
    if (end > 0) least = std::min(least, end);
  }
  return std::isfinite(least) ? least : 0;
}

bool uses_network(const PhaseLoad& phase) {
  return phase.of(EdgeKind::between).any;
}

/// The time that the most loaded link between nodes needs for its bytes of these phases [s].
double busiest_link(std::span<const PhaseLoad> phases, const Placement& placement, Bytes buffer,
                    const LinkBandwidths& bandwidths) {
  ZeroedArray<double> seconds(bandwidths.size());  // by link
  double most = 0;
  for (const PhaseLoad& phase : phases) {
    if (!uses_network(phase)) continue;
    const double bytes = phase_cost(phase, EdgeKind::between, placement, buffer).bytes;
    for (const LinkWeight& link : phase.of(EdgeKind::between).links) {
      double& sum = seconds[link.link];
      sum += bytes * link.weight / bandwidths[link.link].value;
      most = std::max(most, sum);
    }
  }
  return most;
}

/// Lower bound for a single group [s]: the phases from the first to the last that sends between nodes last at
/// least as long as their most loaded link needs. No rank reaches them before it has done the phases before,
/// and every rank has to do the phases after.
double lower_bound_by_links(const Pattern& pattern, Bytes buffer, const LinkBandwidths& bandwidths) {
  const auto& phases = pattern.phases;
  const auto first = std::ranges::find_if(phases, uses_network);
  if (first == phases.end()) return 0;
  const auto last = std::find_if(phases.rbegin(), phases.rend(), uses_network).base();
  double seconds = busiest_link({first, last}, pattern.placement, buffer, bandwidths);
  for (auto phase = phases.begin(); phase != phases.end(); ++phase) {
    if (phase >= first && phase < last) continue;
    const RoundSeconds round = round_seconds(*phase, pattern.placement, buffer);
    if (round.most > 0) seconds += round.least * phase->active;
  }
  return seconds;
}

}  // namespace

PatternShape shape_of(const Pattern& pattern, const LinkBandwidths& bandwidths) {
  PatternShape shape;
  set_groups(*pattern.schedule, shape);
  shape.all_take_part = all_ranks_take_part(*pattern.schedule);
  shape.lock_step = shape.all_take_part && in_lock_step(pattern, bandwidths);
  return shape;
}

double lower_bound_seconds(const Pattern& pattern, const PatternShape& shape, Bytes buffer,
                           const LinkBandwidths& bandwidths) {
  if (shape.groups > 1 || !shape.all_take_part)
    return lower_bound_of_groups(pattern, buffer, bandwidths, shape);
  if (shape.lock_step) return uncontended_seconds(pattern.phases, pattern.placement, buffer);
  return std::max(least_seconds(pattern, buffer), lower_bound_by_links(pattern, buffer, bandwidths));
}

}  // namespace stepcast
