#include "sim/network/schedule_link_load.hpp"

#include <algorithm>
#include <map>

#include "core/memory/zeroed_array.hpp"

namespace stepcast {
namespace {

/// Sums of weights by link, in an array over all links: for a million routes a map would be too slow.
class LinkSums {
 public:
  explicit LinkSums(int links) : sums_(static_cast<std::size_t>(links)) {}

  void add(int link, double weight) {
    double& sum = sums_[static_cast<std::size_t>(link)];
    if (sum == 0) touched_.push_back(link);
    sum += weight;
  }

  std::vector<LinkWeight> take(double divisor) {
    sort_touched();
    std::vector<LinkWeight> weights;
    weights.reserve(touched_.size());
    for (const int link : touched_) {
      double& sum = sums_[static_cast<std::size_t>(link)];
      weights.push_back({link, sum / divisor});
      sum = 0;
    }
    touched_.clear();
    return weights;
  }

 private:
  /// Sorts touched_: where it has many of the links between its ends, by a look at all of these.
  void sort_touched() {
    constexpr std::size_t kDense = 16;
    if (touched_.empty()) return;
    const auto [least, most] = std::ranges::minmax(touched_);
    if (static_cast<std::size_t>(most - least) > kDense * touched_.size()) {
      std::ranges::sort(touched_);
      return;
    }
    touched_.clear();
    for (int link = least; link <= most; ++link) {
      if (sums_[static_cast<std::size_t>(link)] != 0) touched_.push_back(link);
    }
  }

  ZeroedArray<double> sums_;
  std::vector<int> touched_;
};

/// Adds an edge to the extremes of its kind.
/// @param alone  time per byte of a chunk with the network to itself [s/B]
void add_edge(EdgesLoad& edges, double latency, double alone) {
  if (latency > edges.latency || !edges.any) edges.alone_of_longest = 0;
  if (alone > edges.slowest_alone || !edges.any) edges.latency_of_slowest = 0;
  edges.any = true;
  edges.slowest_alone = std::max(edges.slowest_alone, alone);
  edges.fastest_alone = std::min(edges.fastest_alone, alone);
  edges.latency = std::max(edges.latency, latency);
  edges.least_latency = std::min(edges.least_latency, latency);
  if (latency == edges.latency) edges.alone_of_longest = std::max(edges.alone_of_longest, alone);
  if (alone == edges.slowest_alone) edges.latency_of_slowest = std::max(edges.latency_of_slowest, latency);
}

PhaseLoad phase_load(const Schedule& schedule, const Phase& phase, const Placement& placement,
                     const LinkBandwidths& bandwidths, std::array<LinkSums, 2>& sums) {
  PhaseLoad load;
  load.rounds = phase.rounds;
  load.active = phase.active;
  std::vector<int> route;
  std::array<int, 2> largest{};
  for (const Edge& edge : *phase.edges) {
    const EdgeKind kind = kind_of(edge, placement);
    EdgesLoad& edges = load.of(kind);
    route.clear();
    placement.topology->route(placement.endpoints[static_cast<std::size_t>(edge.source)],
                              placement.endpoints[static_cast<std::size_t>(edge.target)], route);
    double latency = 0, alone = 0;
    for (const int id : route) {
      sums[static_cast<std::size_t>(kind)].add(id, edge.chunks);
      latency += placement.topology->link(id).latency.value;
      alone = std::max(alone, edge.chunks / bandwidths[id].value);
    }
    add_edge(edges, latency, alone);
    int& most = largest[static_cast<std::size_t>(kind)];
    most = std::max(most, edge.chunks);
  }
  for (std::size_t kind = 0; kind < 2; ++kind) {
    EdgesLoad& edges = load.edges[kind];
    edges.links = sums[kind].take(std::max(largest[kind], 1));
    edges.slowest_alone /= std::max(largest[kind], 1);
    edges.fastest_alone /= std::max(largest[kind], 1);
    edges.alone_of_longest /= std::max(largest[kind], 1);
    edges.share = static_cast<double>(phase.unit) * largest[kind] / schedule.parts;
  }
  return load;
}

}  // namespace

std::vector<PhaseLoad> phase_loads(const Schedule& schedule, const Placement& placement,
                                   const LinkBandwidths& bandwidths) {
  std::array<LinkSums, 2> sums{LinkSums(placement.topology->link_count()),
                               LinkSums(placement.topology->link_count())};
  std::vector<PhaseLoad> loads;
  std::map<const std::vector<Edge>*, std::size_t> known;  // phases with the same edges load the same links
  for (const Phase& phase : schedule.phases) {
    const auto [found, is_new] = known.try_emplace(phase.edges.get(), loads.size());
    if (is_new) {
      loads.push_back(phase_load(schedule, phase, placement, bandwidths, sums));
    } else {
      PhaseLoad same = loads[found->second];
      same.rounds = phase.rounds;
      same.active = phase.active;
      loads.push_back(std::move(same));
    }
  }
  return loads;
}

PhaseCost phase_cost(const PhaseLoad& phase, EdgeKind kind, const Placement& placement, Bytes buffer) {
  const Platform& platform = *placement.platform;
  const EdgesLoad& edges = phase.of(kind);
  const double bytes = buffer.value * edges.share;
  const MessageCost& row =
      message_cost(kind == EdgeKind::inside ? platform.local_message_costs : platform.message_costs, {bytes});
  const double round = bytes / row.bandwidth_factor;
  PhaseCost cost;
  cost.overhead = placement.latency_factor * row.overhead.value;
  cost.latency = phase.rounds * (placement.latency_factor * (edges.latency + row.overhead.value));
  cost.fixed = cost.latency + (phase.rounds - phase.active) * round * edges.slowest_alone;
  cost.bytes = phase.active * round;
  return cost;
}

void set_most_loaded(std::vector<PhaseLoad>& phases, const LinkBandwidths& bandwidths) {
  for (PhaseLoad& phase : phases) {
    for (EdgesLoad& edges : phase.edges) {
      for (const LinkWeight& link : edges.links)
        edges.most_loaded = std::max(edges.most_loaded, link.weight / bandwidths[link.link].value);
    }
  }
}

double uncontended_seconds(const std::vector<PhaseLoad>& phases, const Placement& placement, Bytes buffer) {
  double seconds = 0;
  for (const PhaseLoad& phase : phases) {
    double longest = 0;
    for (const EdgeKind kind : kEdgeKinds) {
      if (!phase.of(kind).any) continue;
      const PhaseCost cost = phase_cost(phase, kind, placement, buffer);
      longest = std::max(longest, cost.fixed + cost.bytes * phase.of(kind).most_loaded);
    }
    seconds += longest;
  }
  return seconds;
}

}  // namespace stepcast
