#include "sim/mail.hpp"

#include <algorithm>

namespace stepcast {
namespace {

bool matches(const Message& message, int tag, int role) {
  return message.tag == tag && (role == kAnyone || message.from == role);
}

}  // namespace

Mail::Mail(Collectives& traffic, const Simulation& simulation, std::size_t programs)
    : traffic_(traffic), simulation_(simulation), boxes_(programs) {
  if (!traffic.shares_links()) return;
  const LinkBandwidths& bandwidths = simulation.bandwidths;
  shared_.emplace(Shared{
      {traffic.network().engine(), bandwidths.size(), [&bandwidths](int link) { return bandwidths[link]; }},
      {*simulation.platform, bandwidths, simulation.plan->endpoints}});
}

std::size_t Mail::free_flight() {
  if (free_.empty()) {
    flights_.emplace_back();
    return flights_.size() - 1;
  }
  const std::size_t flight = free_.back();
  free_.pop_back();
  return flight;
}

void Mail::send(Address from, Address to, std::size_t to_program, const Message& message,
                std::shared_ptr<SimOperation> operation, ComputeClock& clock) {
  const std::size_t number = free_flight();
  Flight& flight = flights_[number];
  flight.message = message;
  flight.message.from = from.role;
  flight.to_program = to_program;
  flight.operation = std::move(operation);
  flight.clock = &clock;
  flight.started = traffic_.network().engine().now();
  carry(from, to, number);
}

void Mail::carry(Address from, Address to, std::size_t number) {
  Flight& flight = flights_[number];
  const Message& message = flight.message;
  const int pattern = traffic_.channel_pattern(from.role, to.role);
  if (pattern >= 0) {
    const auto arrived = [this, number] { arrive(number); };
    return traffic_.network().play(pattern, message.buffer.size, 1, arrived);
  }
  const auto endpoint = [&](Address address) {
    const int first = simulation_.plan->roles[static_cast<std::size_t>(address.role)].first_rank;
    return simulation_.plan->endpoints[static_cast<std::size_t>(first + address.member)];
  };
  const Platform& platform = *simulation_.platform;
  const Topology& topology = *traffic_.placement().topology;
  const int source = endpoint(from), target = endpoint(to);
  const bool local = platform.node_of(source) == platform.node_of(target);
  const MessageCost& cost = message_cost(local ? platform.local_message_costs : platform.message_costs,
                                         message.buffer.size / message.parts);
  flight.size = message.buffer.size / cost.bandwidth_factor;
  flight.links.clear();
  topology.route(source, target, flight.links);
  const double latency = message.parts * simulation_.latency_factor *
                         (topology.latency_of(flight.links).value + cost.overhead.value);
  if (shared_) shared_->nodes.shorten(source, target, flight.links);
  Engine& engine = traffic_.network().engine();
  engine.at(engine.now() + latency, [this, number] { transfer(number); });
}

void Mail::transfer(std::size_t number) {
  const Flight& flight = flights_[number];
  if (flight.size.value <= 0) return arrive(number);
  const auto arrived = [this, number] { arrive(number); };
  if (shared_) return shared_->links.start_flow(flight.links, flight.size, arrived);
  traffic_.network().engine().start_flow(flight.links, flight.size, arrived);
}

void Mail::arrive(std::size_t number) {
  Flight& flight = flights_[number];
  const auto operation = std::move(flight.operation);
  busy_seconds_ += traffic_.network().engine().now() - flight.started;
  operation->end = flight.clock->work_now();
  Letter letter{flight.message, operation->lags};
  const std::size_t program = flight.to_program;
  free_.push_back(number);
  deliver(program, std::move(letter));
  operation->complete();
}

void Mail::hand_over(const Wish& wish, Letter letter) {
  wish.operation->message = letter.message;
  wish.operation->lags = std::move(letter.lags);
  wish.operation->end = wish.clock->work_now();
  wish.operation->complete();
}

void Mail::deliver(std::size_t program, Letter letter) {
  Box& box = boxes_[program];
  const auto wish = std::find_if(box.wishes.begin(), box.wishes.end(),
                                 [&](const Wish& one) { return matches(letter.message, one.tag, one.role); });
  if (wish == box.wishes.end()) return box.letters.push_back(std::move(letter));
  const Wish met = std::move(*wish);
  box.wishes.erase(wish);
  hand_over(met, std::move(letter));
}

void Mail::receive(std::size_t program, int tag, int role, std::shared_ptr<SimOperation> operation,
                   ComputeClock& clock) {
  Box& box = boxes_[program];
  const auto letter = std::find_if(box.letters.begin(), box.letters.end(),
                                   [&](const Letter& one) { return matches(one.message, tag, role); });
  if (letter == box.letters.end()) return box.wishes.push_back({tag, role, std::move(operation), &clock});
  Letter met = std::move(*letter);
  box.letters.erase(letter);
  // The message lay there already: done at once, without an event, as nobody waits for the operation yet.
  hand_over({tag, role, std::move(operation), &clock}, std::move(met));
}

}  // namespace stepcast
