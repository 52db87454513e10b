#include "sim/workers/simulated_messages.hpp"

#include <algorithm>

namespace stepcast {
namespace {

/// True for a message between pipeline stages.
bool is_between_stages(const Message& message) {
  return message.buffer.array == Array::activations || message.buffer.array == Array::errors;
}

/// Counts a message that begins (+1) or ends (-1) on the clocks of both programs. What messages between
/// pipeline stages cost the compute at the same time is in the layer times of validations.
void count_on_clocks(const Message& message, int change, WorkClock& sender, WorkClock& receiver) {
  if (is_between_stages(message)) return;
  sender.message(change);
  receiver.message(change);
}

bool matches(const Message& message, MessageTag tag, RoleId role) {
  return message.tag == tag && (role == kAnyone || message.from == role);
}

}  // namespace

SimulatedMessages::SimulatedMessages(const PlannedCollectives& collectives, SimNetwork& network,
                                     std::size_t programs)
    : collectives_(collectives),
      network_(network),
      simulation_(collectives.schedules().simulation()),
      routes_(*simulation_.platform, *collectives.schedules().placement().topology),
      receivers_(programs) {
  if (!collectives.fidelity().uses_bottleneck_sharing) return;
  const LinkBandwidths& bandwidths = simulation_.bandwidths;
  bottleneck_network_.emplace(BottleneckNetwork{
      {network.engine(), bandwidths.size(), [&bandwidths](int link) { return bandwidths[link]; }},
      {*simulation_.platform, bandwidths, simulation_.plan->endpoints}});
  routes_.use_single_port_nodes(bottleneck_network_->nodes);
}

void SimulatedMessages::send(Address from, Address to, std::size_t to_program,
                             std::shared_ptr<SimOperation> operation, WorkClock& clock) {
  const Message& message = operation->message;
  const double started = network_.engine().now();
  MatchQueues* receiver = &receivers_[to_program];
  if (operation->record) {
    operation->record->started = started;
    operation->record->number = ++recorded_;
    operation->record->from = rank_of(from).value;
    operation->record->to = rank_of(to).value;
  }
  count_on_clocks(message, +1, clock, *receiver->clock);
  Engine::Callback arrived = [this, operation = std::move(operation), clock = &clock, started, receiver] {
    arrive(operation, *clock, started, *receiver);
  };
  if (!is_between_stages(message)) return transmit(from, to, message, std::move(arrived));
  // Messages between pipeline stages are sent one after the other, as over a connection: the first of several
  // arrives when its own bytes have arrived, not when all have.
  const Connection connection{from.role, from.member, to.role, to.member};
  std::deque<QueuedMessage>& messages = connections_[connection];
  messages.push_back({from, to, message, std::move(arrived)});
  if (messages.size() == 1) transmit_first(messages);
}

void SimulatedMessages::transmit(Address from, Address to, const Message& message,
                                 Engine::Callback&& arrived) {
  const PatternId pattern = collectives_.channel_pattern(from.role, to.role);
  if (pattern.exists()) return network_.start_pattern(pattern, message.buffer.size, 1, std::move(arrived));
  const Platform& platform = *simulation_.platform;
  const RouteCache::Route route = routes_.between(endpoint(from), endpoint(to));
  const MessageCost& cost =
      message_cost(route.local ? platform.program_costs_in_node() : platform.message_costs,
                   message.buffer.size / message.parts);
  const Bytes size = message.buffer.size / cost.bandwidth_factor;
  const double latency = message.parts * simulation_.latency_factor * (route.latency + cost.overhead.value);
  Engine& engine = network_.engine();
  const double date = engine.now() + latency;
  if (size.value <= 0) return engine.at(date, std::move(arrived));
  if (bottleneck_network_) {
    BottleneckSharing& links = bottleneck_network_->links;
    return links.start_flow_at(date, links.prepare_flow(route.links, size, std::move(arrived)));
  }
  const EndpointPair ends{endpoint(from), endpoint(to)};
  engine.at(date, [this, ends, links = std::vector<int>(route.links.begin(), route.links.end()), size,
                   arrived = std::move(arrived)]() mutable {
    network_.start_flow(ends, links, size, std::move(arrived));
  });
}

void SimulatedMessages::transmit_first(std::deque<QueuedMessage>& messages) {
  const QueuedMessage& first = messages.front();
  transmit(first.from, first.to, first.message, [this, &messages] {
    QueuedMessage sent = std::move(messages.front());
    messages.pop_front();
    if (!messages.empty()) transmit_first(messages);
    sent.arrived();
  });
}

RankId SimulatedMessages::rank_of(Address address) const {
  return simulation_.plan->roles[address.role.index()].rank(address.member);
}

/// The endpoint of a program that stands for one member.
int SimulatedMessages::endpoint(Address address) const {
  return simulation_.plan->endpoints[rank_of(address)];
}

/// Adds a message that arrives now to the timeline. @param shown  the operation of the end to show
void SimulatedMessages::add_spans(const SimOperation& sent, const SimOperation& shown) {
  if (timeline == nullptr || !sent.record || !shown.record) return;
  Span span;
  span.kind = &sent == &shown ? Span::Kind::send : Span::Kind::receive;
  span.start = sent.record->started;
  span.end = sent.record->arrived;
  span.issued = std::min(shown.record->issued, span.start);
  span.item = sent.record->number;
  span.peer = &sent == &shown ? sent.record->to : sent.record->from;
  span.bytes = sent.message.buffer.size.value;
  for (const int rank : shown.record->ranks) {
    span.rank = rank;
    timeline->add(span);
  }
}

void SimulatedMessages::arrive(const SentMessage& sent, WorkClock& clock, double started,
                               MatchQueues& receiver) {
  count_on_clocks(sent->message, -1, clock, *receiver.clock);
  busy_seconds_ += network_.engine().now() - started;
  sent->end = clock.work_now();
  if (sent->record) sent->record->arrived = network_.engine().now();
  add_spans(*sent, *sent);
  match(receiver, sent);
  sent->complete();
}

namespace {

/// Tells the logs of both ends of a message which send it was.
void log_message(const SimOperation& sent, const SimOperation& received) {
  if (!sent.record || sent.record->log == nullptr || received.record->log == nullptr) return;
  const auto operation = [](const OperationRecord& one) -> LoggedOperation& {
    return one.log->operations[one.logged];
  };
  LoggedOperation& receive = operation(*received.record);
  receive.message = sent.message;
  receive.peer = sent.message.from;
  receive.sent = operation(*sent.record).sent = sent.record->logged;
}

}  // namespace

void SimulatedMessages::complete_receive(SimOperation& receive, const WorkClock& clock,
                                         const SimOperation& sent) {
  receive.message = sent.message;
  receive.lags = sent.lags;
  receive.values = sent.values;
  receive.end = clock.work_now();
  add_spans(sent, receive);
  log_message(sent, receive);
  receive.complete();
}

void SimulatedMessages::match(MatchQueues& receiver, const SentMessage& sent) {
  auto& posted = receiver.posted_receives;
  const auto found = std::find_if(posted.begin(), posted.end(), [&](const PostedReceive& one) {
    return matches(sent->message, one.tag, one.role);
  });
  if (found == posted.end()) return receiver.unexpected_messages.push_back(sent);
  const PostedReceive matched = std::move(*found);
  posted.erase(found);
  complete_receive(*matched.operation, *matched.clock, *sent);
}

void SimulatedMessages::receive(std::size_t program, MessageTag tag, RoleId role,
                                std::shared_ptr<SimOperation> operation, WorkClock& clock) {
  MatchQueues& receiver = receivers_[program];
  auto& unexpected = receiver.unexpected_messages;
  const auto found = std::find_if(unexpected.begin(), unexpected.end(),
                                  [&](const SentMessage& one) { return matches(one->message, tag, role); });
  if (found == unexpected.end())
    return receiver.posted_receives.push_back({tag, role, std::move(operation), &clock});
  const SentMessage sent = std::move(*found);
  unexpected.erase(found);
  // The message has already arrived: the operation completes at once, without an event, because no program
  // waits for it yet.
  complete_receive(*operation, clock, *sent);
}

}  // namespace stepcast
