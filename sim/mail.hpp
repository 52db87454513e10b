#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "sim/collective_queue.hpp"
#include "sim/collectives.hpp"
#include "sim/fair_links.hpp"
#include "sim/lone_nodes.hpp"
#include "sim/paths.hpp"

namespace stepcast {

/// Messages between programs: sent over the network, kept at the receiver until it asks for them.
class Mail {
 public:
  /// Where a program stands: its role and the first of the members that it stands for.
  struct Address {
    int role = 0, member = 0;
  };

  Mail(Collectives& traffic, const Simulation& simulation, std::size_t programs);

  /// Sends its message now and completes `operation` when the message has arrived at program `to`.
  void send(Address from, Address to, std::size_t to_program, std::shared_ptr<SimOperation> operation,
            ComputeClock& clock);
  void receive(std::size_t program, int tag, int role, std::shared_ptr<SimOperation> operation,
               ComputeClock& clock);

  double busy_seconds() const { return busy_seconds_; }  ///< sum of the durations of all messages
  /// Messages that went over FairLinks.
  std::int64_t shared_flows() const { return shared_ ? shared_->links.flows() : 0; }

 private:
  using Letter = std::shared_ptr<SimOperation>;  ///< that sent it
  struct Wish {
    int tag, role;
    std::shared_ptr<SimOperation> operation;
    ComputeClock* clock;
  };
  struct Box {
    std::vector<Wish> wishes;  ///< few
    std::deque<Letter> letters;
  };

  struct Parcel {
    Address from, to;
    Message message;
    Engine::Callback arrived;
  };
  using Lane = std::array<int, 4>;  ///< role and member, from and to

  void carry_first(std::deque<Parcel>& parcels);
  int endpoint(Address address) const;
  void carry(Address from, Address to, const Message& message, Engine::Callback&& arrived);
  void arrive(const Letter& letter, ComputeClock& clock, double started, Box& box);
  static void deliver(Box& box, const Letter& letter);
  static void hand_over(SimOperation& wish, const ComputeClock& clock, const SimOperation& letter);

  Collectives& traffic_;
  const Simulation& simulation_;
  /// Where SimGrid's own sharing would take too long.
  struct Shared {
    FairLinks links;
    LoneNodes nodes;
  };
  std::optional<Shared> shared_;
  Paths paths_;
  std::vector<Box> boxes_;                    ///< of each program
  std::map<Lane, std::deque<Parcel>> lanes_;  ///< between stages; the first of each is on its way
  double busy_seconds_ = 0;
};

}  // namespace stepcast
