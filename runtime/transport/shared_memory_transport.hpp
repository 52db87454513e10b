#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/transport/transport.hpp"

namespace stepcast {

/// Memory that the ranks of one machine share: a ring buffer of floats for each ordered pair of ranks and a
/// wake-up flag for each rank. The rings are small enough to stay in the cache, so that a float crosses main
/// memory only in the ranks' own buffers.
struct SharedMemoryTransport {
  /// Bytes of zeroed, 64-byte aligned memory that `ranks` ranks need.
  static std::size_t bytes_for(int ranks);
};

/// Transport over shared memory.
/// @param memory        of SharedMemoryTransport::bytes_for(ranks) bytes; it outlives the transport
/// @param spin_seconds  how long `wait` polls before it sleeps on the wake-up flag; 0: it never polls
/// @param may_poll      asked while `wait` polls longer than `spin_seconds` (one second at most): true keeps
/// it
///                      polling; empty: it sleeps after `spin_seconds`
std::unique_ptr<Transport> shared_memory_transport(void* memory, int rank, int ranks, double spin_seconds,
                                                   std::function<bool()> may_poll = {});

}  // namespace stepcast
