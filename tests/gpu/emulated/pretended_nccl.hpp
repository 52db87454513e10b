#pragma once

#include <nccl.h>

#include <cstddef>

namespace stepcast::pretended {

/// An operation that a rank enqueues in the fake NCCL.
struct Op {
  enum class Kind { all_reduce, broadcast, reduce, reduce_scatter, all_gather, send, receive };
  Kind kind{};
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t count = 0;
  int root = 0;  ///< root of a collective, or the other rank of a message
  int rank = 0;
  bool done = false;
};

/// Enqueues an operation, which runs when the other ranks have enqueued theirs.
ncclResult_t call(ncclComm_t comm, Op op);
int rank_of(ncclComm_t comm);
int size_of(ncclComm_t comm);

/// What the fake does besides its duty.
struct Behaviour {
  int answers_in_progress = 0;  ///< ncclCommGetAsyncError says so this many times after each call
  int fails_at = -1;            ///< number of the call that returns an error at once, counted from 0
  int aborts_in_group = 0;      ///< counts aborts between ncclGroupStart and ncclGroupEnd, which are faults
  int aborts = 0;               ///< counts all aborts
  int calls = 0;                ///< counts calls of operations
};
Behaviour& behaviour();

/// From now on all existing communicators report that another rank has failed.
void break_groups();

}  // namespace stepcast::pretended
