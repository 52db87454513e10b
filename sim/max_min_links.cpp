#include "sim/max_min_links.hpp"

#include <algorithm>

namespace stepcast {
namespace {

constexpr double kRounding = 1e-12;  // of dates
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
