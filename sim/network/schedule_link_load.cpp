#include "sim/network/schedule_link_load.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "core/memory.hpp"
#include "core/random.hpp"

namespace stepcast {

namespace {

/// Sums of weights by link, in an array over all links: for a million routes a map would be too slow.
class LinkSums {
 public:
  explicit LinkSums(int links) : sums_(links) {}

  void add(int link, double weight) {
    double& sum = sums_[link];
    if (sum == 0) touched_.push_back(link);
    sum += weight;
  }

  std::vector<LinkWeight> take(double divisor) {
    sort_touched();
    std::vector<LinkWeight> weights;
    weights.reserve(touched_.size());
    for (const int link : touched_) {
      double& sum = sums_[link];
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
      if (sums_[link] != 0) touched_.push_back(link);
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
    placement.topology->route(placement.endpoints[edge.source], placement.endpoints[edge.target], route);
    double latency = 0, alone = 0;
    for (const int id : route) {
      sums[ordinal(kind)].add(id, edge.chunks);
      latency += placement.topology->link(id).latency.value;
      alone = std::max(alone, edge.chunks / bandwidths[id].value);
    }
    add_edge(edges, latency, alone);
    int& most = largest[ordinal(kind)];
    most = std::max(most, edge.chunks);
  }
  for (std::size_t kind = 0; kind < 2; ++kind) {
    EdgesLoad& edges = load.edges[kind];
    edges.links = sums[kind].take(std::max(largest[kind], 1));
    edges.slowest_alone /= std::max(largest[kind], 1);
    edges.fastest_alone /= std::max(largest[kind], 1);
    edges.alone_of_longest /= std::max(largest[kind], 1);
    edges.share = 1.0 * phase.unit * largest[kind] / schedule.parts;
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

namespace {

/// Links of equal load. The load is the time that a pattern occupies the link for each byte of its largest
/// edge.
struct Class {
  int link = 0;               ///< the first link of the class
  std::vector<double> loads;  ///< by pattern [s/B]
};

using Patterns = std::vector<const std::vector<LinkWeight>*>;
using BandwidthOf = std::function<BytesPerSecond(int link)>;

std::size_t links_in(const Patterns& patterns) {
  int links = 0;
  for (const auto* pattern : patterns) {
    for (const LinkWeight& use : *pattern) links = std::max(links, use.link + 1);
  }
  return links;
}

/// A hash of all loads of each link; 0 for a link that no pattern uses.
ZeroedArray<std::uint64_t> signatures(const Patterns& patterns, const BandwidthOf& bandwidth) {
  ZeroedArray<std::uint64_t> hashes(links_in(patterns));
  for (std::size_t pattern = 0; pattern < patterns.size(); ++pattern) {
    for (const LinkWeight& use : *patterns[pattern]) {
      std::uint64_t& hash = hashes[use.link];
      const double load = use.weight / bandwidth(use.link).value;
      hash = mixed_hash(mixed_hash(hash, pattern + 1), std::bit_cast<std::uint64_t>(load));
    }
  }
  return hashes;
}

/// One class for all links of equal hash, ordered by the first link of each class.
std::vector<Class> classes_of(const Patterns& patterns, const BandwidthOf& bandwidth) {
  auto hashes = signatures(patterns, bandwidth);
  const auto hash_of = [&](const LinkWeight& use) { return hashes[use.link]; };
  std::unordered_map<std::uint64_t, int> first;
  for (const auto* pattern : patterns) {
    for (const LinkWeight& use : *pattern) {
      int& link = first.try_emplace(hash_of(use), use.link).first->second;
      link = std::min(link, use.link);
    }
  }
  std::map<int, Class> classes;
  for (const auto& [hash, link] : first) classes[link] = {link, std::vector<double>(patterns.size(), 0)};
  for (std::size_t pattern = 0; pattern < patterns.size(); ++pattern) {
    for (const LinkWeight& use : *patterns[pattern]) {
      if (first[hash_of(use)] != use.link) continue;
      classes[use.link].loads[pattern] = use.weight / bandwidth(use.link).value;
    }
  }
  std::vector<Class> list;
  for (auto& [link, one] : classes) list.push_back(std::move(one));
  return list;
}

bool dominates(const Class& a, const Class& b) {
  for (std::size_t i = 0; i < a.loads.size(); ++i) {
    if (a.loads[i] < b.loads[i]) return false;
  }
  return true;
}

/// The classes that no other class dominates; a dominated link is never the first to saturate.
std::vector<Class> binding(std::vector<Class> classes) {
  const auto total = [](const Class& one) {
    double sum = 0;
    for (const double load : one.loads) sum += load;
    return sum;
  };
  std::stable_sort(classes.begin(), classes.end(),
                   [&](const Class& a, const Class& b) { return total(a) > total(b); });
  std::vector<Class> front;
  for (Class& one : classes) {
    const bool covered =
        std::any_of(front.begin(), front.end(), [&](const Class& by) { return dominates(by, one); });
    if (!covered) front.push_back(std::move(one));
  }
  return front;
}

/// The smallest multiplier up to 64 that makes all ratios whole numbers to within 0.2 %.
double multiplier(const std::vector<double>& ratios) {
  for (int m = 1; m < 64; ++m) {
    const bool whole = std::all_of(ratios.begin(), ratios.end(), [m](double ratio) {
      return std::abs(m * ratio - std::round(m * ratio)) <= 0.002 * m * ratio;
    });
    if (whole) return m;
  }
  return 64;
}

}  // namespace

LinkClasses merge_links(const Patterns& patterns, const BandwidthOf& bandwidth) {
  LinkClasses merged;
  merged.patterns.resize(patterns.size());
  for (const Class& one : binding(classes_of(patterns, bandwidth))) {
    double least = INFINITY;
    for (const double load : one.loads) {
      if (load > 0) least = std::min(least, load);
    }
    std::vector<double> ratios;
    for (const double load : one.loads) ratios.push_back(load / least);
    const double times = multiplier(ratios);
    const int id = merged.bandwidths.size();
    merged.bandwidths.push_back({times / least});
    for (std::size_t pattern = 0; pattern < patterns.size(); ++pattern) {
      const std::size_t weight = std::llround(times * ratios[pattern]);
      merged.patterns[pattern].insert(merged.patterns[pattern].end(), weight, id);
    }
  }
  return merged;
}

}  // namespace stepcast
