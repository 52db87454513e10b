#include "sim/usage.hpp"

#include <algorithm>
#include <map>

#include "core/zeroed_array.hpp"

namespace stepcast {
namespace {

/// Adds up weights link by link; dense, so that a million routes cost no map.
class LinkSums {
 public:
  explicit LinkSums(int links) : sums_(static_cast<std::size_t>(links)) {}

  void add(int link, double weight) {
    double& sum = sums_[static_cast<std::size_t>(link)];
    if (sum == 0) touched_.push_back(link);
    sum += weight;
  }

  std::vector<LinkWeight> take(double divisor) {
    std::sort(touched_.begin(), touched_.end());
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
  ZeroedArray<double> sums_;
  std::vector<int> touched_;
};

/// Takes note of one edge. @param alone  seconds a byte of a chunk with the network to itself
void take_edge(EdgesUsage& edges, double latency, double alone) {
  if (latency > edges.latency || !edges.any) edges.alone_of_longest = 0;
  if (alone > edges.alone || !edges.any) edges.latency_of_slowest = 0;
  edges.any = true;
  edges.alone = std::max(edges.alone, alone);
  edges.fastest = std::min(edges.fastest, alone);
  edges.latency = std::max(edges.latency, latency);
  edges.least_latency = std::min(edges.least_latency, latency);
  if (latency == edges.latency) edges.alone_of_longest = std::max(edges.alone_of_longest, alone);
  if (alone == edges.alone) edges.latency_of_slowest = std::max(edges.latency_of_slowest, latency);
}

PhaseUsage phase_usage(const Schedule& schedule, const Phase& phase, const Placement& placement,
                       const LinkBandwidths& bandwidths, std::array<LinkSums, 2>& sums) {
  PhaseUsage usage;
  usage.rounds = phase.rounds;
  usage.active = phase.active;
  std::vector<int> route;
  std::array<int, 2> largest{};
  for (const Edge& edge : *phase.edges) {
    const EdgeKind kind = kind_of(edge, placement);
    EdgesUsage& edges = usage.of(kind);
    route.clear();
    placement.topology->route(placement.endpoints[static_cast<std::size_t>(edge.source)],
                              placement.endpoints[static_cast<std::size_t>(edge.target)], route);
    double latency = 0, alone = 0;
    for (const int id : route) {
      sums[static_cast<std::size_t>(kind)].add(id, edge.chunks);
      latency += placement.topology->link(id).latency.value;
      alone = std::max(alone, edge.chunks / bandwidths[id].value);
    }
    take_edge(edges, latency, alone);
    int& most = largest[static_cast<std::size_t>(kind)];
    most = std::max(most, edge.chunks);
  }
  for (std::size_t kind = 0; kind < 2; ++kind) {
    EdgesUsage& edges = usage.edges[kind];
    edges.links = sums[kind].take(std::max(largest[kind], 1));
    edges.alone /= std::max(largest[kind], 1);
    edges.fastest /= std::max(largest[kind], 1);
    edges.alone_of_longest /= std::max(largest[kind], 1);
    edges.share = static_cast<double>(phase.unit) * largest[kind] / schedule.parts;
  }
  return usage;
}

}  // namespace

std::vector<PhaseUsage> usage_of(const Schedule& schedule, const Placement& placement,
                                 const LinkBandwidths& bandwidths) {
  std::array<LinkSums, 2> sums{LinkSums(placement.topology->link_count()),
                               LinkSums(placement.topology->link_count())};
  std::vector<PhaseUsage> usages;
  std::map<const std::vector<Edge>*, std::size_t> known;  // phases that share edges share their links
  for (const Phase& phase : schedule.phases) {
    const auto [found, is_new] = known.try_emplace(phase.edges.get(), usages.size());
    if (is_new) {
      usages.push_back(phase_usage(schedule, phase, placement, bandwidths, sums));
    } else {
      PhaseUsage same = usages[found->second];
      same.rounds = phase.rounds;
      same.active = phase.active;
      usages.push_back(std::move(same));
    }
  }
  return usages;
}

PhaseCost phase_cost(const PhaseUsage& usage, EdgeKind kind, const Placement& placement, Bytes buffer) {
  const Platform& platform = *placement.platform;
  const EdgesUsage& edges = usage.of(kind);
  const double bytes = buffer.value * edges.share;
  const MessageCost& row =
      message_cost(kind == EdgeKind::inside ? platform.local_message_costs : platform.message_costs, {bytes});
  const double round = bytes / row.bandwidth_factor;
  PhaseCost cost;
  cost.overhead = placement.latency_factor * row.overhead.value;
  cost.latency = usage.rounds * (placement.latency_factor * (edges.latency + row.overhead.value));
  cost.fixed = cost.latency + (usage.rounds - usage.active) * round * edges.alone;
  cost.bytes = usage.active * round;
  return cost;
}

void find_slowest(std::vector<PhaseUsage>& usage, const LinkBandwidths& bandwidths) {
  for (PhaseUsage& phase : usage) {
    for (EdgesUsage& edges : phase.edges) {
      for (const LinkWeight& link : edges.links)
        edges.slowest = std::max(edges.slowest, link.weight / bandwidths[link.link].value);
    }
  }
}

double uncontended_seconds(const std::vector<PhaseUsage>& usage, const Placement& placement, Bytes buffer) {
  double seconds = 0;
  for (const PhaseUsage& phase : usage) {
    double longest = 0;
    for (const EdgeKind kind : kEdgeKinds) {
      if (!phase.of(kind).any) continue;
      const PhaseCost cost = phase_cost(phase, kind, placement, buffer);
      longest = std::max(longest, cost.fixed + cost.bytes * phase.of(kind).slowest);
    }
    seconds += longest;
  }
  return seconds;
}

}  // namespace stepcast
