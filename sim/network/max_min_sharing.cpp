#include "sim/network/max_min_sharing.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast {
namespace {

constexpr double kRateRounding = 1e-12;  // relative error of dates and rates
constexpr double kRoundedSum = 1e-9;

}  // namespace

MaxMinSharing::MaxMinSharing(Engine& engine, int links, std::function<BytesPerSecond(int link)> bandwidth)
    : engine_(engine), bandwidth_(std::move(bandwidth)), link_indices_(static_cast<std::size_t>(links)) {}

bool MaxMinSharing::Link::may_be_full() const {
  return max_demand > bandwidth * (1 + kRoundedSum);
}

MaxMinSharing::Index MaxMinSharing::link_of(int link) {
  Index& number = link_indices_[static_cast<std::size_t>(link)];
  if (number == 0) {
    links_.emplace_back();
    links_.back().bandwidth = bandwidth_(link).value;
    number = static_cast<Index>(links_.size());
  }
  return number - 1;
}

MaxMinSharing::Index MaxMinSharing::free_flow() {
  if (free_.empty()) {
    pool_.emplace_back();
    return static_cast<Index>(pool_.size() - 1);
  }
  const Index flow = free_.back();
  free_.pop_back();
  return flow;
}

void MaxMinSharing::start_flow(std::span<const int> links, Bytes size, Engine::Callback&& done) {
  ++flows_;
  if (links.empty() || size.value <= 0) return engine_.at(engine_.now(), std::move(done));
  const Index number = free_flow();
  Flow& flow = pool_[number];
  flow.remaining = size.value;
  flow.since = engine_.now();
  flow.rate = 0;
  flow.max_rate = 1e300;
  flow.done = std::move(done);
  flow.hops.clear();
  for (const int id : links) {
    flow.hops.push_back({link_of(id), 0});
    flow.max_rate = std::min(flow.max_rate, links_[flow.hops.back().link].bandwidth);
  }
  for (Hop& hop : flow.hops) {
    Link& link = links_[hop.link];
    hop.slot = static_cast<Index>(link.flows.size());
    link.flows.push_back(number);
    const bool was_full = link.may_be_full();
    link.max_demand += flow.max_rate;
    note_change(hop.link, was_full);
  }
  started_flows_.push_back(number);
  request_sharing();
}

void MaxMinSharing::note_change(Index link, bool was_full) {
  if (was_full || links_[link].may_be_full()) changed_links_.push_back(link);
}

void MaxMinSharing::remove(Index number) {
  Flow& flow = pool_[number];
  ++flow.generation;
  for (std::size_t i = 0; i < flow.hops.size(); ++i) {
    const Hop hop = flow.hops[i];
    Link& link = links_[hop.link];
    const Index last = link.flows.back();
    for (Hop& other : pool_[last].hops) {
      if (other.link == hop.link && other.slot + 1 == link.flows.size()) other.slot = hop.slot;
    }
    link.flows[hop.slot] = last;
    link.flows.pop_back();
    const bool was_full = link.may_be_full();
    link.max_demand = link.flows.empty() ? 0 : link.max_demand - flow.max_rate;
    note_change(hop.link, was_full);
  }
  free_.push_back(number);
}

/// Schedules share_out once per date, after the other events of the date: all flows of a round start
/// together.
void MaxMinSharing::request_sharing() {
  if (sharing_requested_) return;
  sharing_requested_ = true;
  engine_.at(engine_.now(), [this] { share_out(); });
}

/// Sets a timer for the date when the first flow ends, unless an earlier timer is set.
void MaxMinSharing::arm() {
  const auto stale = [this](const End& end) { return pool_[end.flow].generation != end.generation; };
  while (!ends_.empty() && stale(ends_.top())) ends_.pop();
  if (ends_.empty() || ends_.top().date >= armed_) return;
  armed_ = ends_.top().date;
  engine_.at(armed_, [this] { finish_due_flows(); });
}

void MaxMinSharing::finish_due_flows() {
  const double now = engine_.now();
  if (now >= armed_) armed_ = 1e300;
  std::vector<Engine::Callback> done;
  while (!ends_.empty() && ends_.top().date <= now * (1 + kRateRounding)) {
    const End end = ends_.top();
    ends_.pop();
    if (pool_[end.flow].generation != end.generation) continue;
    done.push_back(std::move(pool_[end.flow].done));
    remove(end.flow);
  }
  if (!done.empty()) request_sharing();
  for (Engine::Callback& callback : done) callback();
  arm();
}

void MaxMinSharing::reach(Index number) {
  Flow& flow = pool_[number];
  if (flow.reached) return;
  flow.reached = true;
  reached_flows_.push_back(number);
  for (const Hop& hop : flow.hops) {
    if (links_[hop.link].may_be_full()) reach_link(hop.link);
  }
}

void MaxMinSharing::reach_link(Index number) {
  Link& link = links_[number];
  if (link.reached) return;
  link.reached = true;
  link.unassigned = link.bandwidth;
  link.unfixed = link.flows.size();
  reached_links_.push_back(number);
}

void MaxMinSharing::share_out() {
  sharing_requested_ = false;
  for (const Index flow : started_flows_) reach(flow);
  for (const Index link : changed_links_) reach_link(link);
  for (std::size_t i = 0; i < reached_links_.size(); ++i) {
    for (const Index flow : links_[reached_links_[i]].flows) reach(flow);
  }
  started_flows_.clear();
  changed_links_.clear();
  work_ += static_cast<std::int64_t>(reached_flows_.size()) + 4;
  if (work_ > max_work_) throw TooMuchWork{};
  fill();
  for (const Index flow : reached_flows_) pool_[flow].reached = pool_[flow].fixed = false;
  for (const Index link : reached_links_) links_[link].reached = false;
  reached_flows_.clear();
  reached_links_.clear();
  arm();
}

/// Progressive filling: the flows of the link with the smallest fair share take that share, then those of the
/// link with the next smallest. A flow that no shared link limits takes the bandwidth of its narrowest link.
void MaxMinSharing::fill() {
  std::ranges::sort(reached_flows_, {}, [this](Index flow) { return std::pair(pool_[flow].max_rate, flow); });
  for (const Index number : reached_links_) {
    const Link& link = links_[number];
    if (link.unfixed > 0) shares_.push({link.unassigned / static_cast<double>(link.unfixed), number});
  }
  for (const Index flow : reached_flows_) {
    while (!pool_[flow].fixed) {
      const Share* least = most_contended_link();
      if (least == nullptr || pool_[flow].max_rate <= least->rate) {
        fix(flow, pool_[flow].max_rate);
        break;
      }
      const Share share = *least;
      for (const Index other : links_[share.link].flows) {
        if (!pool_[other].fixed) fix(other, share.rate);
      }
    }
  }
  while (!shares_.empty()) shares_.pop();
}

/// The link with the smallest fair share for flows without a rate. The share of a link only grows while other
/// flows get their rates, so an outdated entry is re-inserted with its new share.
const MaxMinSharing::Share* MaxMinSharing::most_contended_link() {
  while (!shares_.empty()) {
    const Share top = shares_.top();
    const Link& link = links_[top.link];
    const double rate = link.unfixed > 0 ? link.unassigned / static_cast<double>(link.unfixed) : 0;
    if (link.unfixed > 0 && rate <= top.rate * (1 + kRateRounding)) return &shares_.top();
    shares_.pop();
    if (link.unfixed > 0) shares_.push({rate, top.link});
  }
  return nullptr;
}

void MaxMinSharing::fix(Index number, double rate) {
  Flow& flow = pool_[number];
  flow.fixed = true;
  for (const Hop& hop : flow.hops) {
    Link& link = links_[hop.link];
    if (!link.reached) continue;
    link.unassigned = std::max(0.0, link.unassigned - rate);
    --link.unfixed;
  }
  if (std::abs(rate - flow.rate) <= kRateRounding * rate) return;
  const double now = engine_.now();
  flow.remaining = std::max(0.0, flow.remaining - (now - flow.since) * flow.rate);
  flow.since = now;
  flow.rate = rate;
  ends_.push({now + flow.remaining / rate, number, ++flow.generation});
}

}  // namespace stepcast
