#include "sim/fair_links.hpp"

#include <algorithm>

namespace stepcast {
namespace {

constexpr double kRounding = 1e-12;  // of the bytes served
constexpr std::size_t kSoon = 6;     // flows ahead that the cache is to fetch

}  // namespace

FairLinks::FairLinks(Engine& engine, int links, std::function<BytesPerSecond(int link)> bandwidth)
    : engine_(engine), bandwidth_(std::move(bandwidth)), numbers_(static_cast<std::size_t>(links)) {}

int FairLinks::queue_of(int link) {
  int& number = numbers_[static_cast<std::size_t>(link)];
  if (number == 0) {
    queues_.emplace_back();
    shares_.push_back(0);
    queues_.back().bandwidth = bandwidth_(link).value;
    number = static_cast<int>(queues_.size());
  }
  return number - 1;
}

void FairLinks::settle(int number) {
  const double now = engine_.now();
  Queue& settled = queue(number);
  if (!settled.places.empty() && settled.count > 0) settled.served += (now - settled.since) * share(number);
  settled.since = now;
}

std::uint32_t FairLinks::free_flow() {
  if (free_.empty()) {
    pool_.emplace_back();
    return static_cast<std::uint32_t>(pool_.size() - 1);
  }
  const std::uint32_t flow = free_.back();
  free_.pop_back();
  return flow;
}

void FairLinks::start_flow(const std::vector<int>& links, Bytes size, Engine::Callback done) {
  start_flow(prepare_flow(links, size, std::move(done)));
}

std::uint32_t FairLinks::prepare_flow(std::span<const int> links, Bytes size, Engine::Callback&& done) {
  const std::uint32_t number = free_flow();
  Flow& flow = pool_[number];
  flow.done = std::move(done);
  flow.finish = size.value;
  flow.hops.assign(links.size());
  Hop* hop = flow.hops.begin();
  for (const int link : links) (hop++)->queue = queue_of(link);
  return number;
}

void FairLinks::start_flow(std::uint32_t number) {
  pool_[number].next = kNobody;
  start_row(number);
}

void FairLinks::join(std::uint32_t number) {
  Flow& flow = pool_[number];
  for (Hop& hop : flow.hops) {
    Queue& joined = queue(hop.queue);
    settle(hop.queue);
    hop.slot = static_cast<std::uint32_t>(joined.flows.size());
    joined.flows.push_back(crossing_of(number, static_cast<std::size_t>(&hop - flow.hops.begin())));
    ++joined.count;
    resized(hop.queue);
  }
}

void FairLinks::start_flow_at(double date, std::uint32_t number) {
  pool_[number].next = kNobody;
  if (date == row_.date && engine_.asked() == row_.asked) {
    pool_[row_.last].next = number;
  } else {
    engine_.at(date, [this, number] { start_row(number); });
    row_ = {date, engine_.asked(), number};
  }
  row_.last = number;
}

/// Flows that start at once join all their links before any of them looks for its least share.
void FairLinks::start_row(std::uint32_t first) {
  row_.date = -1;  // closed, if it is this one
  std::uint32_t* last = &first;
  for (std::uint32_t number = first; number != kNobody; number = *last) {
    ++flows_;
    Flow& flow = pool_[number];
    if (flow.finish > 0 && flow.hops.begin() != flow.hops.end()) {
      join(number);
      last = &flow.next;
    } else {
      *last = flow.next;
      end(number);
    }
  }
  for (std::uint32_t number = first; number != kNobody; number = pool_[number].next)
    line_up(number, narrowest(pool_[number]), pool_[number].finish);
  for (std::uint32_t number = first; number != kNobody; number = pool_[number].next) {
    for (const Hop& hop : pool_[number].hops) {
      if (queue(hop.queue).has_changed()) reconsider(hop.queue);
    }
  }
}

/// A flow of nothing ends by an event of its own, never inside the call that started it.
void FairLinks::end(std::uint32_t number) {
  engine_.at(engine_.now(), std::move(pool_[number].done));
  free_.push_back(number);
}

/// Puts a flow with so many bytes to go into a queue that was settled.
void FairLinks::line_up(std::uint32_t number, int at, double bytes) {
  Queue& joined = queue(at);
  Flow& flow = pool_[number];
  flow.queue = at;
  flow.finish = joined.served + bytes;
  flow.sequence = sequence_++;
  for (const Hop& hop : flow.hops) queue(hop.queue).flows[hop.slot].held = at;
  joined.places.push({flow.finish, flow.sequence, number});
  arm(at);
}

/// Has the cache fetch what the next ends of flows need: first the flow, later what its call points to.
void FairLinks::fetch(const RisingQueue<Place>& places) const {
  const Flow& next = pool_[places.ahead(kSoon).flow];
  __builtin_prefetch(&next);
  __builtin_prefetch(&next.done);
  pool_[places.ahead(kSoon / 2).flow].done.touch();
}

/// Sets a look at the date when the first of the link's flows will be done, if no earlier one is set: an
/// arrival only moves that date away, and the look then sets the next.
void FairLinks::arm(int at) {
  Queue& armed = queue(at);
  while (!armed.places.empty() && is_stale(armed.places.top())) armed.places.pop();
  if (armed.places.empty()) return;
  const Place& first = armed.places.top();
  const double left = first.finish - armed.served;
  const double date = engine_.now() + std::max(0.0, left) / share(at);
  if (date >= armed.armed) return;
  armed.armed = date;
  engine_.at(date, [this, at, generation = ++armed.generation] { look(at, generation); });
}

void FairLinks::look(int at, std::uint32_t generation) {
  if (generation != queue(at).generation) return;
  queue(at).armed = 1e300;
  settle(at);
  for (;;) {
    auto& places = queue(at).places;
    if (places.empty()) break;
    const Place first = places.top();
    if (!is_stale(first)) {
      const double left = first.finish - queue(at).served;
      const bool later = engine_.now() + left / share(at) > engine_.now();
      if (later && left > kRounding * first.finish) break;
      fetch(places);
      places.pop();
      leave(first.flow, at);
    } else {
      places.pop();
    }
  }
  arm(at);
}

/// @param looking  link whose flows are looked through, and which is armed when that is done
void FairLinks::leave(std::uint32_t number, int looking) {
  pool_[number].sequence = sequence_++;  // its place is stale
  for (const Hop& hop : pool_[number].hops) {
    Queue& crossed = queue(hop.queue);
    settle(hop.queue);
    crossed.flows[hop.slot].flow = kNobody;
    ++crossed.gone;
    if (--crossed.count == 0) {
      crossed.flows.clear();
      crossed.gone = 0;
    }
    resized(hop.queue);
  }
  for (const Hop& hop : pool_[number].hops) {
    if (queue(hop.queue).count == 0) continue;
    if (queue(hop.queue).has_changed()) reconsider(hop.queue);
    if (hop.queue != looking) arm(hop.queue);
  }
  Engine::Callback done = std::move(pool_[number].done);
  free_.push_back(number);
  done();
}

}  // namespace stepcast
