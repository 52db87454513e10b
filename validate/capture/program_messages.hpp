#pragma once

#include <functional>
#include <vector>

#include "kernels/network/network.hpp"
#include "report/results/results.hpp"
#include "runtime/ranks/rank_context.hpp"

namespace stepcast {

/// Times messages between programs as a server and its worker exchange them: rank 0 trains a step and sends
/// its gradients to rank 1, whose program receives them and sends as many parameters back. The sender's
/// program copies them, the threads of both ranks carry them, and the receiver's program waits. All ranks
/// call it.
/// @param progress  called before each repetition
/// @return on rank 0, rows of measured links with the name `program_message`: half of a round trip, for the
///         whole network, for an eighth and a 64th of it, and for 256 bytes
std::vector<Row> time_program_messages(const RankContext& run, Network& network,
                                       const std::function<void()>& progress);

}  // namespace stepcast
