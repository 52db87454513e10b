#include "sim/mail.hpp"

#include <algorithm>

namespace stepcast {
namespace {

bool matches(const Message& message, int tag, int role) {
  return message.tag == tag && (role == kAnyone || message.from == role);
}

}  // namespace

Mail::Mail(Collectives& traffic, const Simulation& simulation, std::size_t programs)
    : traffic_(traffic),
      simulation_(simulation),
      paths_(*simulation.platform, *traffic.placement().topology),
      boxes_(programs) {
  if (!traffic.form().shares_links) return;
  const LinkBandwidths& bandwidths = simulation.bandwidths;
  shared_.emplace(Shared{
      {traffic.network().engine(), bandwidths.size(), [&bandwidths](int link) { return bandwidths[link]; }},
      {*simulation.platform, bandwidths, simulation.plan->endpoints}});
  paths_.shorten(shared_->nodes);
}

void Mail::send(Address from, Address to, std::size_t to_program, std::shared_ptr<SimOperation> operation,
                ComputeClock& clock) {
  const Message& message = operation->message;
  const double started = traffic_.network().engine().now();
  Box* box = &boxes_[to_program];
  Engine::Callback arrived = [this, operation = std::move(operation), clock = &clock, started, box] {
    arrive(operation, *clock, started, *box);
  };
  const Array carried = message.buffer.array;
  if (carried != Array::activations && carried != Array::errors)
    return carry(from, to, message, std::move(arrived));
  // Between stages, as over a connection: the first of several is there when its own bytes are, not when all
  // are.
  const Lane lane{from.role, from.member, to.role, to.member};
  std::deque<Parcel>& parcels = lanes_[lane];
  parcels.push_back({from, to, message, std::move(arrived)});
  if (parcels.size() == 1) carry_first(parcels);
}

void Mail::carry(Address from, Address to, const Message& message, Engine::Callback&& arrived) {
  const int pattern = traffic_.channel_pattern(from.role, to.role);
  if (pattern >= 0) return traffic_.network().play(pattern, message.buffer.size, 1, std::move(arrived));
  const Platform& platform = *simulation_.platform;
  const Paths::Path path = paths_.between(endpoint(from), endpoint(to));
  const MessageCost& cost = message_cost(path.local ? platform.local_message_costs : platform.message_costs,
                                         message.buffer.size / message.parts);
  const Bytes size = message.buffer.size / cost.bandwidth_factor;
  const double latency = message.parts * simulation_.latency_factor * (path.latency + cost.overhead.value);
  Engine& engine = traffic_.network().engine();
  const double date = engine.now() + latency;
  if (size.value <= 0) return engine.at(date, std::move(arrived));
  if (shared_) {
    return shared_->links.start_flow_at(date,
                                        shared_->links.prepare_flow(path.links, size, std::move(arrived)));
  }
  engine.at(
      date,
      [&network = traffic_.network(), links = std::vector<int>(path.links.begin(), path.links.end()), size,
       arrived = std::move(arrived)]() mutable { network.start_flow(links, size, std::move(arrived)); });
}

void Mail::carry_first(std::deque<Parcel>& parcels) {
  const Parcel& first = parcels.front();
  carry(first.from, first.to, first.message, [this, &parcels] {
    Parcel gone = std::move(parcels.front());
    parcels.pop_front();
    if (!parcels.empty()) carry_first(parcels);
    gone.arrived();
  });
}

/// Of a program that stands for one member.
int Mail::endpoint(Address address) const {
  const int first = simulation_.plan->roles[static_cast<std::size_t>(address.role)].first_rank;
  return simulation_.plan->endpoints[static_cast<std::size_t>(first + address.member)];
}

void Mail::arrive(const Letter& letter, ComputeClock& clock, double started, Box& box) {
  busy_seconds_ += traffic_.network().engine().now() - started;
  letter->end = clock.work_now();
  deliver(box, letter);
  letter->complete();
}

void Mail::hand_over(SimOperation& wish, const ComputeClock& clock, const SimOperation& letter) {
  wish.message = letter.message;
  wish.lags = letter.lags;
  wish.values = letter.values;
  wish.end = clock.work_now();
  wish.complete();
}

void Mail::deliver(Box& box, const Letter& letter) {
  const auto wish = std::find_if(box.wishes.begin(), box.wishes.end(), [&](const Wish& one) {
    return matches(letter->message, one.tag, one.role);
  });
  if (wish == box.wishes.end()) return box.letters.push_back(letter);
  const Wish met = std::move(*wish);
  box.wishes.erase(wish);
  hand_over(*met.operation, *met.clock, *letter);
}

void Mail::receive(std::size_t program, int tag, int role, std::shared_ptr<SimOperation> operation,
                   ComputeClock& clock) {
  Box& box = boxes_[program];
  const auto found = std::find_if(box.letters.begin(), box.letters.end(),
                                  [&](const Letter& one) { return matches(one->message, tag, role); });
  if (found == box.letters.end()) return box.wishes.push_back({tag, role, std::move(operation), &clock});
  const Letter letter = std::move(*found);
  box.letters.erase(found);
  // The message lay there already: done at once, without an event, as nobody waits for the operation yet.
  hand_over(*operation, clock, *letter);
}

}  // namespace stepcast
