#include <algorithm>

#include "sim/network/bottleneck_sharing.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kLookahead = 6;        // number of flows to prefetch ahead
constexpr std::size_t kMaxSlotsPerFlow = 3;  // larger ratios of slots (flows and gaps) to flows are compacted

}  // namespace

int BottleneckSharing::bottleneck_of(const Flow& flow) const {
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

/// The bottleneck computed from one link's record of the flow. Of links with equal shares, the first on the
/// route is the bottleneck, as in the overload above.
int BottleneckSharing::bottleneck_of(const LinkFlow& link_flow, int at) const {
  if (link_flow.place == LinkFlow::alone) return at;
  if (link_flow.place == LinkFlow::many) return bottleneck_of(pool_[link_flow.flow]);
  const double here = shares_[static_cast<std::size_t>(at)];
  const double there = shares_[static_cast<std::size_t>(link_flow.other)];
  const bool there_first = link_flow.place == LinkFlow::second;
  return there < here || (there_first && there == here) ? link_flow.other : at;
}

BottleneckSharing::LinkFlow BottleneckSharing::link_flow_of(std::uint32_t number, std::size_t hop) const {
  const Hop* hops = pool_[number].hops.begin();
  const auto count = static_cast<std::size_t>(pool_[number].hops.end() - hops);
  if (count == 1) return {number, 0, 0, LinkFlow::alone};
  if (count > 2) return {number, 0, 0, LinkFlow::many};
  return {number, 0, hops[1 - hop].queue, hop == 0 ? LinkFlow::first : LinkFlow::second};
}

void BottleneckSharing::move_slot(int at, std::size_t from, std::size_t to) {
  auto& flows = queue(at).flows;
  flows[to] = flows[from];
  for (Hop& hop : pool_[flows[to].flow].hops) {
    if (hop.queue == at && hop.slot == from) hop.slot = static_cast<std::uint32_t>(to);
  }
}

void BottleneckSharing::close_gaps(int at) {
  auto& flows = queue(at).flows;
  std::size_t kept = 0;
  for (std::size_t slot = 0; slot < flows.size(); ++slot) {
    const std::uint32_t ahead_flow = flows[std::min(slot + kLookahead, flows.size() - 1)].flow;
    if (ahead_flow != kNoFlow) __builtin_prefetch(&pool_[ahead_flow]);
    if (flows[slot].flow == kNoFlow) continue;
    if (kept != slot) move_slot(at, slot, kept);
    ++kept;
  }
  flows.resize(kept);
}

/// Lets the flows of a link choose their bottlenecks again.
void BottleneckSharing::reassign_bottlenecks(int at) {
  Queue& changed = queue(at);
  changed.count_when_checked = changed.count;
  changed.departed = 0;
  if (changed.flows.size() > kMaxSlotsPerFlow * changed.count) close_gaps(at);
  for (std::size_t slot = 0; slot < changed.flows.size(); ++slot) {
    const LinkFlow link_flow = changed.flows[slot];
    if (link_flow.flow == kNoFlow) continue;
    const int better = bottleneck_of(link_flow, at);
    const int bottleneck = link_flow.bottleneck;
    if (better == bottleneck) continue;
    update_served(bottleneck);
    update_served(better);
    enqueue(link_flow.flow, better, std::max(0.0, pool_[link_flow.flow].finish - queue(bottleneck).served));
  }
}

}  // namespace stepcast
