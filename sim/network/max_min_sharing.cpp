#include "sim/network/max_min_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/expects.hpp"

namespace stepcast {
namespace {

constexpr double kRateRounding = 1e-12;  // relative error of dates and rates
constexpr double kRoundedSum = 1e-9;

}  // namespace

MaxMinSharing::MaxMinSharing(Engine& engine, int links, std::function<BytesPerSecond(int link)> bandwidth)
    : engine_(engine), bandwidth_(std::move(bandwidth)), link_indices_(links) {}

MaxMinSharing::Index MaxMinSharing::link_of(int link) {
  expects(link >= 0, "a link of the platform");
  Index& number = link_indices_[link];
  if (number == 0) {
    links_.emplace_back();
    link_states_.push_back(0);
    links_.back().bandwidth = bandwidth_(link).value;
    number = links_.size();
  }
  return number - 1;
}

/// Makes room for routes of this length. Most runs have routes of a few links, and a coupled flow has many.
void MaxMinSharing::widen(std::size_t hops) {
  std::vector<Hop> wider(pool_.size() * hops);
  for (Index flow = 0; flow < pool_.size(); ++flow)
    std::ranges::copy(hops_of(flow), wider.begin() + (flow * hops));
  hops_ = std::move(wider);
  hops_per_flow_ = hops;
}

MaxMinSharing::Index MaxMinSharing::free_flow(std::size_t hops) {
  if (hops > hops_per_flow_) widen(std::max(hops, 2 * hops_per_flow_));
  if (free_.empty()) {
    if (pool_.size() > EndQueue::kMaxFlow)
      throw std::length_error("more flows at once than MaxMinSharing holds");
    pool_.emplace_back();
    flow_states_.push_back(0);
    calls_.emplace_back();
    hops_.resize(pool_.size() * hops_per_flow_);
    return pool_.size() - 1;
  }
  const Index flow = free_.back();
  free_.pop_back();
  return flow;
}

void MaxMinSharing::start_flow(std::span<const int> links, Bytes size, Engine::Callback&& done) {
  if (free_kept_.empty()) {
    free_kept_.push_back(kept_.size());
    kept_.emplace_back();
  }
  const std::uint64_t number = free_kept_.back();
  free_kept_.pop_back();
  kept_[number] = std::move(done);
  const auto call = [](void* self, std::uint64_t kept) {
    static_cast<MaxMinSharing*>(self)->call_kept(kept);
  };
  start_flow(links, size, FlowEnd{call, this, number});
}

void MaxMinSharing::call_kept(std::uint64_t number) {
  expects(number < kept_.size() && kept_[number], "a call that was kept and not made yet");
  Engine::Callback callback = std::move(kept_[number]);
  free_kept_.push_back(number);
  callback();
}

void MaxMinSharing::start_alone(double date, Bytes size, double rate, const FlowEnd& end) {
  ++flows_;
  work_ += 4;
  const Index number = free_flow(0);
  calls_[number] = end;
  pool_[number].hops = 0;
  pool_[number].end = date + size.value / rate;
  queue_end(number);
  if (pool_[number].end < armed_) arm();
}

void MaxMinSharing::start_flow(std::span<const int> links, Bytes size, const FlowEnd& end, double max_rate) {
  ++flows_;
  if (links.empty() || size.value <= 0) return engine_.at(engine_.now(), end);
  const Index number = free_flow(links.size());
  Flow& flow = pool_[number];
  flow.remaining = size.value;
  flow.since = engine_.now();
  flow.rate = 0;
  flow.max_rate = max_rate;
  flow.queued = kNever;
  calls_[number] = end;
  flow.hops = links.size();
  Hop* hop = hops_.data() + number * hops_per_flow_;
  for (const int id : links) {
    const Index link = link_of(id);
    *hop++ = {link, static_cast<Index>(links_[link].flows.size())};
    links_[link].flows.push_back(number);
    flow.max_rate = std::min(flow.max_rate, links_[link].bandwidth);
  }
  for (const Hop& crossed : hops_of(number))
    set_demand(crossed.link, links_[crossed.link].max_demand + flow.max_rate);
  started_flows_.push_back(number);
  request_sharing();
}

void MaxMinSharing::set_demand(Index number, double max_demand) {
  Link& link = links_[number];
  link.max_demand = max_demand;
  std::uint8_t& states = link_states_[number];
  const bool was_full = is(kFull, states), full = max_demand > link.bandwidth * (1 + kRoundedSum);
  if (was_full != full) states ^= kFull;
  if (was_full || full) changed_links_.push_back(number);
}

void MaxMinSharing::remove(Index number) {
  Flow& flow = pool_[number];
  flow.order = 0;
  for (const Hop hop : hops_of(number)) {
    Link& link = links_[hop.link];
    const Index last = link.flows.back();
    if (hop.slot + 1 != link.flows.size()) {
      for (Hop& other : hops_of(last)) {
        if (other.link == hop.link && other.slot + 1 == link.flows.size()) other.slot = hop.slot;
      }
      link.flows[hop.slot] = last;
    }
    link.flows.pop_back();
    set_demand(hop.link, link.flows.empty() ? 0 : link.max_demand - flow.max_rate);
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

void MaxMinSharing::queue_end(Index number) {
  Flow& flow = pool_[number];
  flow.queued = flow.end;
  flow.order = ends_.add(flow.end, number);
}

/// Brings a valid end to the top of the queue, if there is any. The entry of a flow that has become slower
/// since is queued again.
void MaxMinSharing::skip_stale_ends() {
  while (!ends_.empty()) {
    const std::uint64_t first = ends_.order();
    const Index number = EndQueue::flow_of(first);
    const Flow& flow = pool_[number];
    const bool valid = flow.order == first;
    if (valid && flow.end <= flow.queued) return;
    ends_.pop();
    if (valid) queue_end(number);
  }
}

/// Sets a timer for the date when the first flow ends, unless an earlier timer is set.
void MaxMinSharing::arm() {
  skip_stale_ends();
  if (ends_.empty() || ends_.date() >= armed_) return;
  armed_ = ends_.date();
  engine_.at(armed_, [this] { finish_due_flows(); });
}

void MaxMinSharing::finish_due_flows() {
  const double now = engine_.now();
  const double armed = now >= armed_ ? kNever : armed_;
  done_.clear();
  for (skip_stale_ends(); !ends_.empty() && ends_.date() <= now * (1 + kRateRounding); skip_stale_ends()) {
    const Index flow = EndQueue::flow_of(ends_.order());
    ends_.pop();
    done_.push_back(calls_[flow]);
    remove(flow);
  }
  if (!changed_links_.empty()) request_sharing();
  armed_ = now;  // flows that start alone need no timer before arm() below
  for (const FlowEnd& end : done_) end();
  armed_ = armed;
  arm();
}

bool MaxMinSharing::crosses_full_link(Index flow) {
  return std::ranges::any_of(hops_of(flow),
                             [this](const Hop& hop) { return is(kFull, link_states_[hop.link]); });
}

void MaxMinSharing::reach(Index number) {
  if (is(kReached, flow_states_[number])) return;
  flow_states_[number] |= kReached;
  reached_flows_.push_back(number);
  for (const Hop& hop : hops_of(number)) {
    if (is(kFull, link_states_[hop.link])) reach_link(hop.link);
  }
}

void MaxMinSharing::reach_link(Index number) {
  if (is(kReached, link_states_[number])) return;
  link_states_[number] |= kReached;
  Link& link = links_[number];
  link.unassigned = link.bandwidth;
  link.unfixed = link.flows.size();
  reached_links_.push_back(number);
}

void MaxMinSharing::share_out() {
  sharing_requested_ = false;
  work_ += 4;
  for (const Index flow : started_flows_) {
    if (crosses_full_link(flow)) {
      reach(flow);
    } else {
      ++work_;
      fix(flow, pool_[flow].max_rate);
    }
  }
  for (const Index link : changed_links_) reach_link(link);
  for (std::size_t i = 0; i < reached_links_.size(); ++i) {
    for (const Index flow : links_[reached_links_[i]].flows) {
      if (!is(kReached, flow_states_[flow])) reach(flow);
    }
  }
  started_flows_.clear();
  changed_links_.clear();
  work_ += reached_flows_.size();
  if (work_ > max_work_) throw TooMuchWork{};
  fill();
  for (const Index flow : reached_flows_) flow_states_[flow] = 0;
  for (const Index link : reached_links_) link_states_[link] &= kFull;
  reached_flows_.clear();
  reached_links_.clear();
  arm();
}

/// Progressive filling: the flows of the link with the smallest fair share take that share, then those of the
/// link with the next smallest. A flow that no shared link limits takes the bandwidth of its narrowest link.
void MaxMinSharing::fill() {
  const auto narrowest = [this](Index flow) { return pool_[flow].max_rate; };
  if (!std::ranges::is_sorted(reached_flows_, {}, narrowest))
    std::ranges::stable_sort(reached_flows_, {}, narrowest);
  for (const Index number : reached_links_) {
    const Link& link = links_[number];
    if (link.unfixed > 0) shares_.push({link.unassigned / link.unfixed, number});
  }
  for (const Index flow : reached_flows_) {
    while (!is(kFixed, flow_states_[flow])) {
      const Share* least = most_contended_link();
      if (least == nullptr || pool_[flow].max_rate <= least->rate) {
        fix_in_links(flow, pool_[flow].max_rate);
        break;
      }
      const Share share = *least;
      for (const Index other : links_[share.link].flows) {
        if (!is(kFixed, flow_states_[other])) fix_in_links(other, share.rate);
      }
    }
  }
  shares_.clear();
}

/// The link with the smallest fair share for flows without a rate. The share of a link only grows while other
/// flows get their rates, so an outdated entry is re-inserted with its new share.
const MaxMinSharing::Share* MaxMinSharing::most_contended_link() {
  while (!shares_.empty()) {
    const Share top = shares_.top();
    const Link& link = links_[top.link];
    const double rate = link.unfixed > 0 ? link.unassigned / link.unfixed : 0;
    if (link.unfixed > 0 && rate <= top.rate * (1 + kRateRounding)) return &shares_.top();
    shares_.pop();
    if (link.unfixed > 0) shares_.push({rate, top.link});
  }
  return nullptr;
}

void MaxMinSharing::fix_in_links(Index number, double rate) {
  flow_states_[number] |= kFixed;
  for (const Hop& hop : hops_of(number)) {
    if (!is(kReached, link_states_[hop.link])) continue;
    Link& link = links_[hop.link];
    link.unassigned = std::max(0.0, link.unassigned - rate);
    --link.unfixed;
  }
  fix(number, rate);
}

void MaxMinSharing::fix(Index number, double rate) {
  Flow& flow = pool_[number];
  if (std::abs(rate - flow.rate) <= kRateRounding * rate) return;
  const double now = engine_.now();
  flow.remaining = std::max(0.0, flow.remaining - (now - flow.since) * flow.rate);
  flow.since = now;
  flow.rate = rate;
  flow.end = now + flow.remaining / rate;
  if (flow.end < flow.queued) queue_end(number);
}

}  // namespace stepcast
