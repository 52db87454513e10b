#pragma once

#include <optional>

#include "sim/simulation.hpp"
#include "strategies/nccl/collective_time.hpp"

namespace stepcast {

/// The time of NCCL for one group of a collective, with all groups of its communicator active at the same
/// time: they share NICs and sockets. No value if the platform names no NCCL, if the scenario asks for an
/// algorithm that NCCL does not have, or for a collective that it does not run: an exchange of halos, one
/// that includes hosts, or a group with unequal numbers of ranks on its nodes. Those are simulated message by
/// message as without NCCL.
/// The simulation's factors on all bandwidths and latencies count. Those on single links do not.
/// @param asked  the all-reduce that the scenario asks for; `ring` leaves NCCL only its rings
std::optional<NcclTime> nccl_time_of(const Simulation& simulation, const Collective& collective,
                                     const AllReduceChoice& asked);

/// The schedule that stands for NCCL's choice in counts and in real runs: a ring, or a double tree.
Algorithm schedule_algorithm(const NcclTime& time);

}  // namespace stepcast
