#include "sim/shortest.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "sim/bounds.hpp"
#include "sim/sample.hpp"

namespace stepcast {
namespace {

/// Of each rank the number of its group: those that hang together by what they send each other.
struct Groups {
  std::vector<int> of;
  int count = 0;
};

Groups groups_of(const Schedule& schedule) {
  std::vector<std::size_t> leader(static_cast<std::size_t>(schedule.ranks));
  std::iota(leader.begin(), leader.end(), 0);
  const auto leader_of = [&](std::size_t rank) {
    while (leader[rank] != rank) rank = leader[rank] = leader[leader[rank]];
    return rank;
  };
  std::set<const void*> known;
  for (const Phase& phase : schedule.phases) {
    if (!known.insert(phase.edges.get()).second) continue;
    for (const Edge& edge : *phase.edges) {
      leader[leader_of(static_cast<std::size_t>(edge.source))] =
          leader_of(static_cast<std::size_t>(edge.target));
    }
  }
  Groups groups{std::vector<int>(leader.size(), -1), 0};
  for (std::size_t rank = 0; rank < leader.size(); ++rank) {
    int& number = groups.of[leader_of(rank)];
    if (number < 0) number = groups.count++;
    groups.of[rank] = number;
  }
  return groups;
}

/// An edge with the network to itself.
struct Alone {
  const std::vector<MessageCost>* costs;
  double latency, pace;  ///< seconds, seconds a byte
};

std::vector<Alone> alone_of(const Phase& phase, const Placement& placement,
                            const LinkBandwidths& bandwidths) {
  std::vector<Alone> edges;
  std::vector<int> route;
  for (const Edge& edge : *phase.edges) {
    route.clear();
    placement.topology->route(placement.endpoints[static_cast<std::size_t>(edge.source)],
                              placement.endpoints[static_cast<std::size_t>(edge.target)], route);
    double pace = 0;
    for (const int link : route) pace = std::max(pace, 1 / bandwidths[link].value);
    const Platform& platform = *placement.platform;
    const bool inside = kind_of(edge, placement) == EdgeKind::inside;
    edges.push_back({inside ? &platform.local_message_costs : &platform.message_costs,
                     placement.latency_factor * placement.topology->latency_of(route).value, pace});
  }
  return edges;
}

double seconds_of(const Alone& edge, double bytes, double latency_factor) {
  const MessageCost& cost = message_cost(*edge.costs, {bytes});
  return edge.latency + latency_factor * cost.overhead.value + bytes / cost.bandwidth_factor * edge.pace;
}

/// As `least_seconds`, of the quickest of many groups side by side, none of which meets another.
double least_of_groups(const Pattern& pattern, Bytes buffer, const LinkBandwidths& bandwidths,
                       const Groups& groups) {
  const auto count = static_cast<std::size_t>(groups.count);
  std::vector<double> quickest(count, 0);
  std::map<const void*, std::vector<double>> beyond;  // the quickest edge, of phases that share edges
  std::map<const void*, std::vector<Alone>> alone;
  for (const Phase& phase : pattern.schedule->phases) {
    const void* edges = phase.edges.get();
    if (!alone.contains(edges)) alone[edges] = alone_of(phase, pattern.placement, bandwidths);
    std::vector<RoundSeconds> rounds(count);
    for (std::size_t i = 0; i < phase.edges->size(); ++i) {
      const Edge& edge = (*phase.edges)[i];
      const double bytes = buffer.value * phase.unit * edge.chunks / pattern.schedule->parts;
      const double seconds = seconds_of(alone[edges][i], bytes, pattern.placement.latency_factor);
      RoundSeconds& round =
          rounds[static_cast<std::size_t>(groups.of[static_cast<std::size_t>(edge.source)])];
      round.least = std::min(round.least, seconds);
      round.most = std::max(round.most, seconds);
    }
    std::vector<double>& more = beyond[edges];
    more.resize(count, 0);
    for (std::size_t group = 0; group < count; ++group) {
      if (rounds[group].most == 0) continue;
      quickest[group] += phase.active * rounds[group].least;
      more[group] += phase.active * (rounds[group].most - rounds[group].least);
    }
  }
  double least = INFINITY;
  for (std::size_t group = 0; group < count; ++group) {
    double most = 0;
    for (const auto& [edges, more] : beyond) most = std::max(most, more[group]);
    if (quickest[group] > 0) least = std::min(least, quickest[group] + most);
  }
  return std::isfinite(least) ? least : 0;
}

bool any_between(const PhaseUsage& phase) {
  return phase.of(EdgeKind::between).any;
}

/// The bytes that the busiest link between nodes must carry in some phases.
double busiest_link(std::span<const PhaseUsage> phases, const Placement& placement, Bytes buffer,
                    const LinkBandwidths& bandwidths) {
  std::map<int, double> seconds;
  double most = 0;
  for (const PhaseUsage& phase : phases) {
    if (!any_between(phase)) continue;
    const double bytes = phase_cost(phase, EdgeKind::between, placement, buffer).bytes;
    for (const LinkWeight& link : phase.of(EdgeKind::between).links) {
      double& sum = seconds[link.link];
      sum += bytes * link.weight / bandwidths[link.link].value;
      most = std::max(most, sum);
    }
  }
  return most;
}

/// One group: the phases between nodes in a row, from the first to the last of them, need what their busiest
/// link does; no rank is there before it has done what comes before, and each has to do what comes after.
double least_by_links(const Pattern& pattern, Bytes buffer, const LinkBandwidths& bandwidths) {
  const auto& phases = pattern.phases;
  const auto first = std::ranges::find_if(phases, any_between);
  if (first == phases.end()) return 0;
  const auto last = std::find_if(phases.rbegin(), phases.rend(), any_between).base();
  double seconds = busiest_link({first, last}, pattern.placement, buffer, bandwidths);
  for (auto phase = phases.begin(); phase != phases.end(); ++phase) {
    if (phase >= first && phase < last) continue;
    const RoundSeconds round = round_seconds(*phase, pattern.placement, buffer);
    if (round.most > 0) seconds += round.least * phase->active;
  }
  return seconds;
}

}  // namespace

double shortest_seconds(const Pattern& pattern, Bytes buffer, const LinkBandwidths& bandwidths) {
  const Groups groups = groups_of(*pattern.schedule);
  if (groups.count > 1 || !all_take_part(*pattern.schedule))
    return least_of_groups(pattern, buffer, bandwidths, groups);
  // Of many ranks on links as they were built lock step is taken for close, as by the rule of forms.
  const bool likely = bandwidths.as_built() && sampled_messages(*pattern.schedule) > kFewSampled;
  if (likely || in_lock_step(pattern, bandwidths))
    return uncontended_seconds(pattern.phases, pattern.placement, buffer);
  return std::max(least_seconds(pattern, buffer), least_by_links(pattern, buffer, bandwidths));
}

}  // namespace stepcast
