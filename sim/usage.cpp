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

PhaseUsage phase_usage(const Schedule& schedule, const Phase& phase, const Placement& placement,
                       LinkSums& sums) {
  PhaseUsage usage;
  usage.rounds = phase.rounds;
  usage.active = phase.active;
  std::vector<int> route;
  int largest = 0;
  for (const Edge& edge : *phase.edges) {
    const int from = placement.endpoints[static_cast<std::size_t>(edge.source)];
    const int to = placement.endpoints[static_cast<std::size_t>(edge.target)];
    route.clear();
    placement.topology->route(from, to, route);
    double latency = 0;
    for (const int id : route) {
      const Link& link = placement.topology->link(id);
      sums.add(id, edge.chunks);
      latency += link.latency.value;
      usage.alone = std::max(usage.alone, edge.chunks / link.bandwidth.value);
    }
    const bool local = placement.platform->node_of(from) == placement.platform->node_of(to);
    double& worst = local ? usage.local_latency : usage.network_latency;
    worst = std::max(worst, latency);
    (local ? usage.has_local : usage.has_network) = true;
    largest = std::max(largest, edge.chunks);
  }
  usage.links = sums.take(std::max(largest, 1));
  usage.alone /= std::max(largest, 1);
  usage.share = static_cast<double>(phase.unit) * largest / schedule.parts;
  return usage;
}

}  // namespace

std::vector<PhaseUsage> usage_of(const Schedule& schedule, const Placement& placement) {
  LinkSums sums(placement.topology->link_count());
  std::vector<PhaseUsage> usages;
  std::map<const std::vector<Edge>*, std::size_t> known;  // phases that share edges share their links
  for (const Phase& phase : schedule.phases) {
    const auto [found, is_new] = known.try_emplace(phase.edges.get(), usages.size());
    if (is_new) {
      usages.push_back(phase_usage(schedule, phase, placement, sums));
    } else {
      PhaseUsage same = usages[found->second];
      same.rounds = phase.rounds;
      same.active = phase.active;
      usages.push_back(std::move(same));
    }
  }
  return usages;
}

RoundCost round_cost(const PhaseUsage& usage, const Placement& placement, Bytes buffer) {
  const Platform& platform = *placement.platform;
  const double bytes = buffer.value * usage.share;
  RoundCost cost{0, bytes};
  const auto include = [&](const std::vector<MessageCost>& costs, double route_latency) {
    const MessageCost& row = message_cost(costs, {bytes});
    cost.latency = std::max(cost.latency, placement.latency_factor * (route_latency + row.overhead.value));
    cost.bytes = bytes / row.bandwidth_factor;
  };
  if (usage.has_local) include(platform.local_message_costs, usage.local_latency);
  if (usage.has_network)
    include(platform.message_costs, usage.network_latency);  // the slower one decides the bytes
  return cost;
}

double fixed_seconds(const PhaseUsage& usage, const RoundCost& cost) {
  return usage.rounds * cost.latency + (usage.rounds - usage.active) * cost.bytes * usage.alone;
}

void find_slowest(std::vector<PhaseUsage>& usage, const LinkBandwidths& bandwidths) {
  for (PhaseUsage& phase : usage) {
    for (const LinkWeight& link : phase.links)
      phase.slowest = std::max(phase.slowest, link.weight / bandwidths[link.link].value);
  }
}

double uncontended_seconds(const std::vector<PhaseUsage>& usage, const Placement& placement, Bytes buffer) {
  double seconds = 0;
  for (const PhaseUsage& phase : usage) {
    const RoundCost cost = round_cost(phase, placement, buffer);
    seconds += fixed_seconds(phase, cost) + phase.active * cost.bytes * phase.slowest;
  }
  return seconds;
}

}  // namespace stepcast
