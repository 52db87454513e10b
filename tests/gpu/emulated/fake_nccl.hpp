#pragma once

#include <nccl.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace stepcast::fake {

/// An operation that a rank starts in the fake NCCL.
struct Op {
  enum class Kind { all_reduce, broadcast, reduce, reduce_scatter, all_gather, send, receive };
  Kind kind{};
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t count = 0;
  int root = 0;  ///< root of a collective, or the other rank of a message
  cudaStream_t stream = nullptr;
  bool begun = false;  ///< its stream has come to it
  bool done = false;
};

/// Starts an operation, or adds it to the group of calls of this thread.
ncclResult_t call(ncclComm_t comm, Op op);
int rank_of(ncclComm_t comm);
int size_of(ncclComm_t comm);

/// Faults that the fake injects, and calls that it counts.
struct Behaviour {
  int answers_in_progress = 0;   ///< ncclCommGetAsyncError says so this many times before a call is launched
  int fails_at = -1;             ///< number of the call that returns an error at once, counted from 0
  int aborts_in_group = 0;       ///< counts aborts between ncclGroupStart and ncclGroupEnd, which are faults
  int aborts = 0;                ///< counts all aborts
  int calls = 0;                 ///< counts calls of operations
  std::vector<int> blocks = {};  ///< limits of thread blocks of the communicators, in the order of joining
  std::function<void(int rank)> on_leaving = {};  ///< called when a rank begins to leave a communicator
  std::function<void(const Op&)> on_call = {};    ///< called with each operation that a rank starts
};
Behaviour& behaviour();

/// The next call of an operation returns an error at once.
void fail_next_call();

/// From now on all existing communicators report that another rank has failed.
void break_groups();

}  // namespace stepcast::fake
