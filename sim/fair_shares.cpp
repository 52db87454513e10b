#include <algorithm>

#include "sim/fair_links.hpp"

// Which of its links holds a flow up.

namespace stepcast {
namespace {

constexpr std::size_t kSoon = 6;      // flows ahead that the cache is to fetch
constexpr std::size_t kMostGaps = 3;  // gaps and flows of a link over flows

}  // namespace

int FairLinks::narrowest(const Flow& flow) const {
  int found = flow.hops.begin()->queue;
  double least = 1e300;
  for (const Hop& hop : flow.hops) {
    const double offered = shares_[static_cast<std::size_t>(hop.queue)];
    if (offered >= least) continue;
    least = offered;
    found = hop.queue;
  }
  return found;
}

/// The same from what one of its links knows; the first of equal ones too.
int FairLinks::narrowest(const Crossing& crossing, int at) const {
  if (crossing.place == Crossing::alone) return at;
  if (crossing.place == Crossing::many) return narrowest(pool_[crossing.flow]);
  const double here = shares_[static_cast<std::size_t>(at)];
  const double there = shares_[static_cast<std::size_t>(crossing.other)];
  const bool there_first = crossing.place == Crossing::second;
  return there < here || (there_first && there == here) ? crossing.other : at;
}

FairLinks::Crossing FairLinks::crossing_of(std::uint32_t number, std::size_t hop) const {
  const Hop* hops = pool_[number].hops.begin();
  const auto count = static_cast<std::size_t>(pool_[number].hops.end() - hops);
  if (count == 1) return {number, 0, 0, Crossing::alone};
  if (count > 2) return {number, 0, 0, Crossing::many};
  return {number, 0, hops[1 - hop].queue, hop == 0 ? Crossing::first : Crossing::second};
}

void FairLinks::move_slot(int at, std::size_t from, std::size_t to) {
  auto& flows = queue(at).flows;
  flows[to] = flows[from];
  for (Hop& hop : pool_[flows[to].flow].hops) {
    if (hop.queue == at && hop.slot == from) hop.slot = static_cast<std::uint32_t>(to);
  }
}

void FairLinks::close_gaps(int at) {
  auto& flows = queue(at).flows;
  std::size_t kept = 0;
  for (std::size_t slot = 0; slot < flows.size(); ++slot) {
    const std::uint32_t soon = flows[std::min(slot + kSoon, flows.size() - 1)].flow;
    if (soon != kNobody) __builtin_prefetch(&pool_[soon]);
    if (flows[slot].flow == kNobody) continue;
    if (kept != slot) move_slot(at, slot, kept);
    ++kept;
  }
  flows.resize(kept);
}

/// Lets the flows of a link look for their least share.
void FairLinks::reconsider(int at) {
  Queue& changed = queue(at);
  changed.considered = changed.count;
  changed.gone = 0;
  if (changed.flows.size() > kMostGaps * changed.count) close_gaps(at);
  for (std::size_t slot = 0; slot < changed.flows.size(); ++slot) {
    const Crossing crossing = changed.flows[slot];
    if (crossing.flow == kNobody) continue;
    const int better = narrowest(crossing, at);
    const int held = crossing.held;
    if (better == held) continue;
    settle(held);
    settle(better);
    line_up(crossing.flow, better, std::max(0.0, pool_[crossing.flow].finish - queue(held).served));
  }
}

}  // namespace stepcast
