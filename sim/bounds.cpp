#include "sim/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace stepcast {
namespace {

constexpr double kAlike = 1e-9;

bool alike(double a, double b) {
  return std::abs(a - b) <= kAlike * std::max(a, b);
}

/// Whether every rank sends and receives as often as every other.
bool everyone(const Phase& phase, int ranks) {
  std::vector<int> sends(static_cast<std::size_t>(ranks), 0), receives = sends;
  for (const Edge& edge : *phase.edges) {
    ++sends[static_cast<std::size_t>(edge.source)];
    ++receives[static_cast<std::size_t>(edge.target)];
  }
  const auto same = [&](int count) { return count == sends.front(); };
  return std::ranges::all_of(sends, same) && std::ranges::all_of(receives, same);
}

/// Seconds a byte on the most loaded link of an edge, when all edges of its kind are at work.
struct Paces {
  double least = INFINITY, most = 0;
  bool equal_sizes = true;
};

Paces paces_of(const Phase& phase, EdgeKind kind, const EdgesUsage& usage, const Placement& placement,
               const LinkBandwidths& bandwidths) {
  const auto load = [&](int link) {
    return std::ranges::lower_bound(usage.links, link, {}, &LinkWeight::link)->weight /
           bandwidths[link].value;
  };
  Paces paces;
  std::vector<int> route;
  for (const Edge& edge : *phase.edges) {
    if (kind_of(edge, placement) != kind) continue;
    route.clear();
    placement.topology->route(placement.endpoints[static_cast<std::size_t>(edge.source)],
                              placement.endpoints[static_cast<std::size_t>(edge.target)], route);
    double most = 0;
    for (const int link : route) most = std::max(most, load(link));
    paces.least = std::min(paces.least, most);
    paces.most = std::max(paces.most, most);
    paces.equal_sizes = paces.equal_sizes && edge.chunks == phase.edges->front().chunks;
  }
  return paces;
}

}  // namespace

bool all_take_part(const Schedule& schedule) {
  std::map<const void*, bool> known;
  return std::ranges::all_of(schedule.phases, [&](const Phase& phase) {
    const auto [found, is_new] = known.try_emplace(phase.edges.get(), false);
    if (is_new) found->second = everyone(phase, schedule.ranks);
    return found->second && phase.rounds == phase.active;
  });
}

double unevenness(const Pattern& pattern, const LinkBandwidths& bandwidths) {
  std::set<const void*> known;
  double most = 1;
  for (std::size_t i = 0; i < pattern.phases.size(); ++i) {
    const Phase& phase = pattern.schedule->phases[i];
    if (!known.insert(phase.edges.get()).second) continue;
    for (const EdgeKind kind : kEdgeKinds) {
      const EdgesUsage& edges = pattern.phases[i].of(kind);
      if (!edges.any) continue;
      const Paces paces = paces_of(phase, kind, edges, pattern.placement, bandwidths);
      most = std::max(most, paces.most / paces.least);
    }
  }
  return most;
}

bool in_lock_step(const Pattern& pattern, const LinkBandwidths& bandwidths) {
  if (!all_take_part(*pattern.schedule)) return false;
  std::set<const void*> known;
  for (std::size_t i = 0; i < pattern.phases.size(); ++i) {
    const Phase& phase = pattern.schedule->phases[i];
    if (!known.insert(phase.edges.get()).second) continue;
    const bool between = pattern.phases[i].of(EdgeKind::between).any;
    if (between && pattern.phases[i].of(EdgeKind::inside).any) return false;
    const EdgeKind kind = between ? EdgeKind::between : EdgeKind::inside;
    const EdgesUsage& edges = pattern.phases[i].of(kind);
    const Paces paces = paces_of(phase, kind, edges, pattern.placement, bandwidths);
    if (!paces.equal_sizes || !alike(paces.least, paces.most)) return false;
    if (!alike(edges.latency, edges.least_latency)) return false;
  }
  return true;
}

RoundSeconds round_seconds(const PhaseUsage& usage, const Placement& placement, Bytes buffer) {
  RoundSeconds round;
  for (const EdgeKind kind : kEdgeKinds) {
    const EdgesUsage& edges = usage.of(kind);
    if (!edges.any) continue;
    const PhaseCost cost = phase_cost(usage, kind, placement, buffer);
    const double bytes = cost.bytes / usage.active;
    const auto one = [&](double latency, double alone) {
      return placement.latency_factor * latency + cost.overhead + bytes * alone;
    };
    round.least = std::min(round.least, one(edges.least_latency, edges.fastest));
    round.most = std::max({round.most, one(edges.latency, edges.alone_of_longest),
                           one(edges.latency_of_slowest, edges.alone), bytes * edges.slowest});
  }
  return round;
}

double least_seconds(const Pattern& pattern, Bytes buffer) {
  double quickest = 0, held_up = 0;
  std::map<const void*, double> more;  // than the quickest edge, of phases that share edges
  for (std::size_t i = 0; i < pattern.phases.size(); ++i) {
    const PhaseUsage& usage = pattern.phases[i];
    const RoundSeconds round = round_seconds(usage, pattern.placement, buffer);
    if (round.most == 0) continue;
    quickest += usage.active * round.least;
    double& beyond = more[pattern.schedule->phases[i].edges.get()];
    beyond += usage.active * (round.most - round.least);
    held_up = std::max(held_up, beyond);
  }
  return quickest + held_up;
}

}  // namespace stepcast
