#pragma once

#include <string>
#include <vector>

#include "strategies/plan/plan.hpp"

namespace stepcast {

/// A node of a trace as a program replays it.
struct ReplayedNode {
  enum class Kind { nothing, device, host, collective, send, receive };

  Kind kind{};
  std::string name = {};
  Seconds duration = {};             ///< device
  CollectiveId collective = {};      ///< collective; host: the pause of one rank that stands for it
  CommunicatorId communicator = {};  ///< collective: its communicator
  RoleId peer = {};                  ///< send, receive
  Message message = {};              ///< send, receive
  std::vector<int> next = {};        ///< nodes that come after it
  int after = 0;                     ///< number of nodes that it comes after
};

/// What one rank does in a step.
struct ReplayedRank {
  std::vector<ReplayedNode> nodes;
  std::vector<std::vector<int>> calls;  ///< by communicator: its collectives, in the order of all ranks
};

/// The program of a rank. In every step it starts each node when the nodes before it have ended. A rank has
/// one device and one host, which do one node after the other; collectives of a communicator start in order.
Program replay(Worker& worker, const ReplayedRank& rank, int steps);

}  // namespace stepcast
