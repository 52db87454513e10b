#include <algorithm>
#include <cmath>

#include "sim/max_min_links.hpp"

// How MaxMinLinks shares out bandwidth: whom a change reaches, and what each of them gets.

namespace stepcast {
namespace {

constexpr double kRounding = 1e-12;  // of rates

}  // namespace

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

}  // namespace stepcast
