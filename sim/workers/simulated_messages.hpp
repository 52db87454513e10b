#pragma once

#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/collectives/collective_queue.hpp"
#include "sim/collectives/planned_collectives.hpp"
#include "sim/network/bottleneck_sharing.hpp"
#include "sim/network/route_cache.hpp"

namespace stepcast {

/// Point-to-point messages between simulated programs: sent over the network and matched with posted
/// receives.
class SimulatedMessages {
 public:
  /// The sender or receiver of a message: a role and the first of the members that its program stands for.
  struct Address {
    RoleId role;
    int member = 0;
  };

  SimulatedMessages(const PlannedCollectives& collectives, SimNetwork& network, std::size_t programs);

  /// States the clock of a program, before any message is sent to it.
  void add_receiver(std::size_t program, WorkClock& clock) { receivers_[program].clock = &clock; }
  /// Sends the message of `operation` now and completes `operation` when the message has arrived at the
  /// program.
  void send(Address from, Address to, std::size_t to_program, std::shared_ptr<SimOperation> operation,
            WorkClock& clock);
  /// Completes `operation` with the first message of this tag and role that arrives at the program, or has
  /// arrived.
  void receive(std::size_t program, MessageTag tag, RoleId role, std::shared_ptr<SimOperation> operation,
               WorkClock& clock);

  Timeline* timeline = nullptr;  ///< null: nothing is recorded

  double busy_seconds() const { return busy_seconds_; }  ///< Sum of the durations of all messages [s].
  /// Number of messages that used BottleneckSharing.
  std::int64_t shared_flows() const { return bottleneck_network_ ? bottleneck_network_->links.flows() : 0; }

 private:
  using SentMessage = std::shared_ptr<SimOperation>;  ///< the operation that sent it
  struct PostedReceive {
    MessageTag tag;
    RoleId role;
    std::shared_ptr<SimOperation> operation;
    WorkClock* clock;
  };
  /// The matching queues of one receiving program, as in MPI.
  struct MatchQueues {
    WorkClock* clock = nullptr;  ///< of the program
    std::vector<PostedReceive> posted_receives;
    std::deque<SentMessage> unexpected_messages;
  };

  struct QueuedMessage {
    Address from, to;
    Message message;
    Engine::Callback arrived;
  };
  using Connection = std::tuple<RoleId, int, RoleId, int>;  ///< sending role and member, then receiving

  void transmit_first(std::deque<QueuedMessage>& messages);
  RankId rank_of(Address address) const;
  int endpoint(Address address) const;
  void transmit(Address from, Address to, const Message& message, Engine::Callback&& arrived);
  void arrive(const SentMessage& sent, WorkClock& clock, double started, MatchQueues& receiver);
  void match(MatchQueues& receiver, const SentMessage& sent);
  void complete_receive(SimOperation& receive, const WorkClock& clock, const SimOperation& sent);
  void add_spans(const SimOperation& sent, const SimOperation& shown);

  const PlannedCollectives& collectives_;
  SimNetwork& network_;
  const Simulation& simulation_;
  /// The links of plans for whose number of messages max-min sharing would take too long.
  struct BottleneckNetwork {
    BottleneckSharing links;
    SinglePortNodes nodes;
  };
  std::optional<BottleneckNetwork> bottleneck_network_;
  RouteCache routes_;
  std::vector<MatchQueues> receivers_;  ///< by program
  /// Messages between pipeline stages that wait for their connection; the first of each queue is being sent.
  std::map<Connection, std::deque<QueuedMessage>> connections_;
  double busy_seconds_ = 0;
  std::int64_t recorded_ = 0;  ///< number of messages of the timeline
};

}  // namespace stepcast
