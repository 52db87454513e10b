#pragma once

#include <mpi.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/transport/transport.hpp"

namespace stepcast {

/// How a transport over MPI waits.
struct MpiWaiting {
  /// How long it tests without a pause, as in shared_memory_transport.
  double spin_seconds = 0;
  std::function<bool()> may_poll = {};
  /// Memory of WakeFlags for all ranks; null: ranks share no memory.
  void* wake_flags = nullptr;
};

/// Transport over MPI point-to-point messages: MPI_Isend and MPI_Irecv of segments of up to 60 KiB, in a
/// communicator of its own. Some receives from every peer are always posted, so that no message is unexpected
/// to MPI. One thread at a time uses a transport, and several transports may be used at once, so MPI must
/// have been started with MPI_THREAD_MULTIPLE. All ranks of MPI_COMM_WORLD call it, in the same order.
///
/// MPI has no call that waits for a message or for another thread, so `wait` tests the requests: at first
/// without a pause. Then, if all ranks share the memory of wake flags, it sleeps until a peer that has sent
/// or received a segment wakes it. Otherwise it tests with pauses that grow with the time already waited
/// (1/32 of it, 20 us to 1 ms). Each test after a pause takes some 25 us from a computation on the same
/// virtual core.
std::unique_ptr<Transport> mpi_transport(MpiWaiting waiting);

/// MPI_Allreduce (sum of floats, in place) over groups of ranks. A communicator is created for each group
/// when it is first used; all ranks of the group call it in the same order.
class MpiAllReduce {
 public:
  /// @param ranks  ranks of MPI_COMM_WORLD, in the same order on all of them
  void operator()(std::span<float> values, const std::vector<RankId>& ranks);

 private:
  MPI_Comm communicator_of(const std::vector<RankId>& ranks);

  std::map<std::vector<RankId>, MPI_Comm> communicators_;
};

/// @throws std::runtime_error with MPI's error text unless `status` is MPI_SUCCESS
void check_mpi(int status, const char* call);

}  // namespace stepcast
