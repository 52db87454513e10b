#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "core/memory/zeroed_array.hpp"
#include "core/random.hpp"
#include "sim/network/schedule_link_load.hpp"

namespace stepcast {
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
  return static_cast<std::size_t>(links);
}

/// A hash of all loads of each link; 0 for a link that no pattern uses.
ZeroedArray<std::uint64_t> signatures(const Patterns& patterns, const BandwidthOf& bandwidth) {
  ZeroedArray<std::uint64_t> hashes(links_in(patterns));
  for (std::size_t pattern = 0; pattern < patterns.size(); ++pattern) {
    for (const LinkWeight& use : *patterns[pattern]) {
      std::uint64_t& hash = hashes[static_cast<std::size_t>(use.link)];
      const double load = use.weight / bandwidth(use.link).value;
      hash = mixed_hash(mixed_hash(hash, pattern + 1), std::bit_cast<std::uint64_t>(load));
    }
  }
  return hashes;
}

/// One class for all links of equal hash, ordered by the first link of each class.
std::vector<Class> classes_of(const Patterns& patterns, const BandwidthOf& bandwidth) {
  auto hashes = signatures(patterns, bandwidth);
  const auto hash_of = [&](const LinkWeight& use) { return hashes[static_cast<std::size_t>(use.link)]; };
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
    const int id = static_cast<int>(merged.bandwidths.size());
    merged.bandwidths.push_back({times / least});
    for (std::size_t pattern = 0; pattern < patterns.size(); ++pattern) {
      const auto weight = static_cast<std::size_t>(std::llround(times * ratios[pattern]));
      merged.patterns[pattern].insert(merged.patterns[pattern].end(), weight, id);
    }
  }
  return merged;
}

}  // namespace stepcast
