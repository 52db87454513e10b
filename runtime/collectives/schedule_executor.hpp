#pragma once

#include <cstdint>
#include <vector>

#include "runtime/transport/transport.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// One send or receive of a round, from the point of view of one rank.
struct Transfer {
  enum class Way { send, receive };

  Way way{};
  int peer = 0;  ///< its number among the ranks of the transport or library communicator that is used
  Slice slice;
  OnReceive on_receive = OnReceive::reduce;  ///< receive: add to the buffer or replace it
  /// receive: indices of transfers of the round that this one may not overtake. They are sends of the same
  /// elements, which send the values from before the round, and earlier receives that add to the same
  /// elements.
  std::vector<std::size_t> after;
  /// send: the values are copied before the round, because a receive of the round overlaps the slice partly.
  bool copy_first = false;
};

/// Transfers that a rank executes at the same time.
using Round = std::vector<Transfer>;

/// The rounds of a schedule in which the rank at `position` sends or receives, for a buffer of `elements`
/// elements. Peers are positions too.
std::vector<Round> rounds_of(const Schedule& schedule, int position, std::int64_t elements);

/// Executes rounds on a buffer, one after the other. All ranks call it at about the same time. The results
/// depend on the schedule alone, not on the order in which messages arrive.
/// @param counted  the first float of each slice says how many of its floats are sent, itself included
void execute_rounds(Transport& transport, const std::vector<Round>& rounds, float* buffer,
                    bool counted = false);

}  // namespace stepcast
