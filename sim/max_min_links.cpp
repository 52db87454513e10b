#include "sim/max_min_links.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast {
namespace {

constexpr double kRounding = 1e-12;  // of dates and rates
constexpr double kRoundedSum = 1e-9;

}  // namespace

MaxMinLinks::MaxMinLinks(Engine& engine, int links, std::function<BytesPerSecond(int link)> bandwidth)
    : engine_(engine), bandwidth_(std::move(bandwidth)), numbers_(static_cast<std::size_t>(links)) {}

bool MaxMinLinks::Link::may_be_full() const {
  return wanted > bandwidth * (1 + kRoundedSum);
}

MaxMinLinks::Number MaxMinLinks::link_of(int link) {
  Number& number = numbers_[static_cast<std::size_t>(link)];
  if (number == 0) {
    links_.emplace_back();
    links_.back().bandwidth = bandwidth_(link).value;
    number = static_cast<Number>(links_.size());
  }
  return number - 1;
}

MaxMinLinks::Number MaxMinLinks::free_flow() {
  if (free_.empty()) {
    pool_.emplace_back();
    return static_cast<Number>(pool_.size() - 1);
  }
  const Number flow = free_.back();
  free_.pop_back();
  return flow;
}

void MaxMinLinks::start_flow(std::span<const int> links, Bytes size, Engine::Callback&& done) {
  ++flows_;
  if (links.empty() || size.value <= 0) return engine_.at(engine_.now(), std::move(done));
  const Number number = free_flow();
  Flow& flow = pool_[number];
  flow.left = size.value;
  flow.since = engine_.now();
  flow.rate = 0;
  flow.most = 1e300;
  flow.done = std::move(done);
  flow.hops.clear();
  for (const int id : links) {
    flow.hops.push_back({link_of(id), 0});
    flow.most = std::min(flow.most, links_[flow.hops.back().link].bandwidth);
  }
  for (Hop& hop : flow.hops) {
    Link& link = links_[hop.link];
    hop.slot = static_cast<Number>(link.flows.size());
    link.flows.push_back(number);
    const bool was_full = link.may_be_full();
    link.wanted += flow.most;
    changed(hop.link, was_full);
  }
  started_.push_back(number);
  ask_to_share();
}

void MaxMinLinks::changed(Number link, bool was_full) {
  if (was_full || links_[link].may_be_full()) changed_links_.push_back(link);
}

void MaxMinLinks::leave(Number number) {
  Flow& flow = pool_[number];
  ++flow.generation;
  for (std::size_t i = 0; i < flow.hops.size(); ++i) {
    const Hop hop = flow.hops[i];
    Link& link = links_[hop.link];
    const Number last = link.flows.back();
    for (Hop& other : pool_[last].hops) {
      if (other.link == hop.link && other.slot + 1 == link.flows.size()) other.slot = hop.slot;
    }
    link.flows[hop.slot] = last;
    link.flows.pop_back();
    const bool was_full = link.may_be_full();
    link.wanted = link.flows.empty() ? 0 : link.wanted - flow.most;
    changed(hop.link, was_full);
  }
  free_.push_back(number);
}

/// Once a date, after all that happens at it: flows of a round start together.
void MaxMinLinks::ask_to_share() {
  if (asked_) return;
  asked_ = true;
  engine_.at(engine_.now(), [this] { share_out(); });
}

void MaxMinLinks::reach(Number number) {
  Flow& flow = pool_[number];
  if (flow.reached) return;
  flow.reached = true;
  reached_flows_.push_back(number);
  for (const Hop& hop : flow.hops) {
    if (links_[hop.link].may_be_full()) reach_link(hop.link);
  }
}

void MaxMinLinks::reach_link(Number number) {
  Link& link = links_[number];
  if (link.reached) return;
  link.reached = true;
  link.spare = link.bandwidth;
  link.open = link.flows.size();
  reached_links_.push_back(number);
}

void MaxMinLinks::share_out() {
  asked_ = false;
  for (const Number flow : started_) reach(flow);
  for (const Number link : changed_links_) reach_link(link);
  for (std::size_t i = 0; i < reached_links_.size(); ++i) {
    for (const Number flow : links_[reached_links_[i]].flows) reach(flow);
  }
  started_.clear();
  changed_links_.clear();
  work_ += static_cast<std::int64_t>(reached_flows_.size()) + 4;
  if (work_ > most_work_) throw TooMuchWork{};
  fill();
  for (const Number flow : reached_flows_) pool_[flow].reached = pool_[flow].fixed = false;
  for (const Number link : reached_links_) links_[link].reached = false;
  reached_flows_.clear();
  reached_links_.clear();
  arm();
}

/// Progressive filling: the flows of the link that offers least take that, then those of the next. A flow
/// that no link holds up takes what its narrowest link has.
void MaxMinLinks::fill() {
  std::ranges::sort(reached_flows_, {}, [this](Number flow) { return std::pair(pool_[flow].most, flow); });
  for (const Number number : reached_links_) {
    const Link& link = links_[number];
    if (link.open > 0) shares_.push({link.spare / static_cast<double>(link.open), number});
  }
  for (const Number flow : reached_flows_) {
    while (!pool_[flow].fixed) {
      const Share* least = narrowest();
      if (least == nullptr || pool_[flow].most <= least->rate) {
        fix(flow, pool_[flow].most);
        break;
      }
      const Share share = *least;
      for (const Number other : links_[share.link].flows) {
        if (!pool_[other].fixed) fix(other, share.rate);
      }
    }
  }
  while (!shares_.empty()) shares_.pop();
}

/// The link that offers least to flows that are not fixed; what it offers only grows as others are.
const MaxMinLinks::Share* MaxMinLinks::narrowest() {
  while (!shares_.empty()) {
    const Share top = shares_.top();
    const Link& link = links_[top.link];
    const double rate = link.open > 0 ? link.spare / static_cast<double>(link.open) : 0;
    if (link.open > 0 && rate <= top.rate * (1 + kRounding)) return &shares_.top();
    shares_.pop();
    if (link.open > 0) shares_.push({rate, top.link});
  }
  return nullptr;
}

void MaxMinLinks::fix(Number number, double rate) {
  Flow& flow = pool_[number];
  flow.fixed = true;
  for (const Hop& hop : flow.hops) {
    Link& link = links_[hop.link];
    if (!link.reached) continue;
    link.spare = std::max(0.0, link.spare - rate);
    --link.open;
  }
  if (std::abs(rate - flow.rate) <= kRounding * rate) return;
  const double now = engine_.now();
  flow.left = std::max(0.0, flow.left - (now - flow.since) * flow.rate);
  flow.since = now;
  flow.rate = rate;
  ends_.push({now + flow.left / rate, number, ++flow.generation});
}

/// Sets a look at the date when the first flow will be done, if no earlier one is set.
void MaxMinLinks::arm() {
  const auto stale = [this](const End& end) { return pool_[end.flow].generation != end.generation; };
  while (!ends_.empty() && stale(ends_.top())) ends_.pop();
  if (ends_.empty() || ends_.top().date >= armed_) return;
  armed_ = ends_.top().date;
  engine_.at(armed_, [this] { look(); });
}

void MaxMinLinks::look() {
  const double now = engine_.now();
  if (now >= armed_) armed_ = 1e300;
  std::vector<Engine::Callback> done;
  while (!ends_.empty() && ends_.top().date <= now * (1 + kRounding)) {
    const End end = ends_.top();
    ends_.pop();
    if (pool_[end.flow].generation != end.generation) continue;
    done.push_back(std::move(pool_[end.flow].done));
    leave(end.flow);
  }
  if (!done.empty()) ask_to_share();
  for (Engine::Callback& callback : done) callback();
  arm();
}

}  // namespace stepcast
