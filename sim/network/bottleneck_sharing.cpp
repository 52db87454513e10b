#include "sim/network/bottleneck_sharing.hpp"

#include <algorithm>

#include "core/expects.hpp"

namespace stepcast {
namespace {

constexpr double kServedRounding = 1e-12;    // relative error of the bytes served
constexpr std::size_t kLookahead = 6;        // number of flows to prefetch ahead
constexpr std::size_t kMaxSlotsPerFlow = 3;  // larger ratios of slots (flows and gaps) to flows are compacted

}  // namespace

BottleneckSharing::BottleneckSharing(Engine& engine, int links,
                                     std::function<BytesPerSecond(int link)> bandwidth)
    : engine_(engine), bandwidth_(std::move(bandwidth)), queue_numbers_(links) {}

int BottleneckSharing::queue_of(int link) {
  int& number = queue_numbers_[link];
  if (number == 0) {
    queues_.emplace_back();
    shares_.push_back(0);
    queues_.back().bandwidth = bandwidth_(link).value;
    number = queues_.size();
  }
  return number - 1;
}

void BottleneckSharing::update_served(int number) {
  const double now = engine_.now();
  Queue& settled = queue(number);
  if (!settled.entries.empty() && settled.count > 0) settled.served += (now - settled.since) * share(number);
  settled.since = now;
}

std::uint32_t BottleneckSharing::free_flow() {
  if (free_.empty()) {
    pool_.emplace_back();
    return pool_.size() - 1;
  }
  const std::uint32_t flow = free_.back();
  free_.pop_back();
  return flow;
}

void BottleneckSharing::start_flow(const std::vector<int>& links, Bytes size, Engine::Callback done) {
  start_flow(prepare_flow(links, size, std::move(done)));
}

std::uint32_t BottleneckSharing::prepare_flow(std::span<const int> links, Bytes size,
                                              Engine::Callback&& done) {
  expects(!links.empty() && size.value >= 0, "a route, and a size that is not negative");
  const std::uint32_t number = free_flow();
  Flow& flow = pool_[number];
  flow.done = std::move(done);
  flow.finish = size.value;
  flow.hops.assign(links.size());
  Hop* hop = flow.hops.begin();
  for (const int link : links) (hop++)->queue = queue_of(link);
  return number;
}

void BottleneckSharing::start_flow(std::uint32_t number) {
  pool_[number].next = kNoFlow;
  start_batch(number);
}

void BottleneckSharing::join(std::uint32_t number) {
  Flow& flow = pool_[number];
  for (Hop& hop : flow.hops) {
    Queue& joined = queue(hop.queue);
    update_served(hop.queue);
    hop.slot = joined.flows.size();
    joined.flows.push_back(link_flow_of(number, &hop - flow.hops.begin()));
    ++joined.count;
    update_share(hop.queue);
  }
}

void BottleneckSharing::start_flow_at(double date, std::uint32_t number) {
  pool_[number].next = kNoFlow;
  if (date == batch_.date && engine_.calls_of_at() == batch_.calls_of_at) {
    pool_[batch_.last].next = number;
  } else {
    engine_.at(date, [this, number] { start_batch(number); });
    batch_ = {date, engine_.calls_of_at(), number};
  }
  batch_.last = number;
}

/// All flows of a batch join their links before any of them chooses its bottleneck.
void BottleneckSharing::start_batch(std::uint32_t first) {
  batch_.date = -1;  // no flow may be added to a batch that has started
  std::uint32_t* last = &first;
  for (std::uint32_t number = first; number != kNoFlow; number = *last) {
    ++flows_;
    Flow& flow = pool_[number];
    if (flow.finish > 0 && flow.hops.begin() != flow.hops.end()) {
      join(number);
      last = &flow.next;
    } else {
      *last = flow.next;
      end_at_once(number);
    }
  }
  for (std::uint32_t number = first; number != kNoFlow; number = pool_[number].next)
    enqueue(number, bottleneck_of(pool_[number]), pool_[number].finish);
  for (std::uint32_t number = first; number != kNoFlow; number = pool_[number].next) {
    for (const Hop& hop : pool_[number].hops) {
      if (queue(hop.queue).has_changed()) reassign_bottlenecks(hop.queue);
    }
  }
}

/// Ends a flow of size 0, by an event of its own: `done` is never called inside the call that starts the
/// flow.
void BottleneckSharing::end_at_once(std::uint32_t number) {
  engine_.at(engine_.now(), std::move(pool_[number].done));
  free_.push_back(number);
}

/// Puts a flow with `bytes` left to send into a queue whose `served` is up to date.
void BottleneckSharing::enqueue(std::uint32_t number, int at, double bytes) {
  Queue& joined = queue(at);
  Flow& flow = pool_[number];
  flow.queue = at;
  flow.finish = joined.served + bytes;
  flow.sequence = sequence_++;
  for (const Hop& hop : flow.hops) queue(hop.queue).flows[hop.slot].bottleneck = at;
  joined.entries.push({flow.finish, flow.sequence, number});
  arm(at);
}

/// Prefetches what the next ends of flows read: first the flow, later the object that its callback points to.
void BottleneckSharing::prefetch_next(const MonotoneQueue<Entry>& entries) const {
  const Flow& next = pool_[entries.ahead(kLookahead).flow];
  __builtin_prefetch(&next);
  __builtin_prefetch(&next.done);
  pool_[entries.ahead(kLookahead / 2).flow].done.prefetch();
}

/// Sets a timer for the date when the first of the queued flows ends, unless an earlier timer is set. An
/// arrival only delays that date; the timer that then fires too early sets the next one.
void BottleneckSharing::arm(int at) {
  Queue& armed = queue(at);
  while (!armed.entries.empty() && is_stale(armed.entries.top())) armed.entries.pop();
  if (armed.entries.empty()) return;
  const Entry& first = armed.entries.top();
  const double left = first.finish - armed.served;
  const double date = engine_.now() + std::max(0.0, left) / share(at);
  if (date >= armed.armed) return;
  armed.armed = date;
  engine_.at(date, [this, at, generation = ++armed.generation] { finish_due_flows(at, generation); });
}

void BottleneckSharing::finish_due_flows(int at, std::uint32_t generation) {
  if (generation != queue(at).generation) return;
  queue(at).armed = 1e300;
  update_served(at);
  for (;;) {
    auto& entries = queue(at).entries;
    if (entries.empty()) break;
    const Entry first = entries.top();
    if (!is_stale(first)) {
      const double left = first.finish - queue(at).served;
      const bool later = engine_.now() + left / share(at) > engine_.now();
      if (later && left > kServedRounding * first.finish) break;
      prefetch_next(entries);
      entries.pop();
      leave(first.flow, at);
    } else {
      entries.pop();
    }
  }
  arm(at);
}

/// @param skip_arming  the queue that the caller is processing and arms itself afterwards
void BottleneckSharing::leave(std::uint32_t number, int skip_arming) {
  pool_[number].sequence = sequence_++;  // makes its queue entry stale
  for (const Hop& hop : pool_[number].hops) {
    Queue& crossed = queue(hop.queue);
    update_served(hop.queue);
    crossed.flows[hop.slot].flow = kNoFlow;
    ++crossed.departed;
    if (--crossed.count == 0) {
      crossed.flows.clear();
      crossed.departed = 0;
    }
    update_share(hop.queue);
  }
  for (const Hop& hop : pool_[number].hops) {
    if (queue(hop.queue).count == 0) continue;
    if (queue(hop.queue).has_changed()) reassign_bottlenecks(hop.queue);
    if (hop.queue != skip_arming) arm(hop.queue);
  }
  Engine::Callback done = std::move(pool_[number].done);
  free_.push_back(number);
  done();
}

int BottleneckSharing::bottleneck_of(const Flow& flow) const {
  int found = flow.hops.begin()->queue;
  double least = 1e300;
  for (const Hop& hop : flow.hops) {
    const double offered = shares_[hop.queue];
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
  const double here = shares_[at];
  const double there = shares_[link_flow.other];
  const bool there_first = link_flow.place == LinkFlow::second;
  return there < here || (there_first && there == here) ? link_flow.other : at;
}

BottleneckSharing::LinkFlow BottleneckSharing::link_flow_of(std::uint32_t number, std::size_t hop) const {
  const Hop* hops = pool_[number].hops.begin();
  const std::size_t count = pool_[number].hops.end() - hops;
  if (count == 1) return {number, 0, 0, LinkFlow::alone};
  if (count > 2) return {number, 0, 0, LinkFlow::many};
  return {number, 0, hops[1 - hop].queue, hop == 0 ? LinkFlow::first : LinkFlow::second};
}

void BottleneckSharing::move_slot(int at, std::size_t from, std::size_t to) {
  auto& flows = queue(at).flows;
  flows[to] = flows[from];
  for (Hop& hop : pool_[flows[to].flow].hops) {
    if (hop.queue == at && hop.slot == from) hop.slot = to;
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

/// Prefetches what the bottlenecks of the flows behind `slot` are computed from, where the link does not keep
/// it: first the flow, later its hops.
void BottleneckSharing::prefetch_routes(const std::vector<LinkFlow>& flows, std::size_t slot) const {
  const auto routed = [&](std::size_t ahead) {
    const LinkFlow& one = flows[std::min(slot + ahead, flows.size() - 1)];
    return one.flow != kNoFlow && one.place == LinkFlow::many ? &pool_[one.flow] : nullptr;
  };
  if (const Flow* far = routed(2 * kLookahead)) __builtin_prefetch(far);
  if (const Flow* near = routed(kLookahead)) __builtin_prefetch(near->hops.begin());
}

/// Lets the flows of a link choose their bottlenecks again.
void BottleneckSharing::reassign_bottlenecks(int at) {
  Queue& changed = queue(at);
  changed.count_when_checked = changed.count;
  changed.departed = 0;
  if (changed.flows.size() > kMaxSlotsPerFlow * changed.count) close_gaps(at);
  for (std::size_t slot = 0; slot < changed.flows.size(); ++slot) {
    prefetch_routes(changed.flows, slot);
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
