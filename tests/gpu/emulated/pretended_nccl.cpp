#include "pretended_nccl.hpp"

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

// A fake of NCCL in non-blocking mode, among ranks that are threads. An operation runs when all ranks have
// enqueued theirs, in order; until then the communicator's state is "in progress". Checks the manual's rules
// for in-place memory and for operations that must not be mixed. It replaces the library's functions.

namespace {

using stepcast::pretended::Op;
using EnqueuedOp = std::shared_ptr<Op>;

/// All ranks of a communicator.
struct Group {
  int size = 0, joined = 0;
  bool broken = false;
  std::vector<std::vector<EnqueuedOp>> collectives;  ///< in order, one operation of each rank
  std::vector<std::size_t> enqueued;                 ///< number of collectives that each rank has enqueued
  std::map<std::pair<int, int>, std::vector<EnqueuedOp>>
      messages;  ///< messages without a partner yet, by sender and receiver
};

std::mutex mutex;
std::map<std::string, std::shared_ptr<Group>> groups;

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  int rank = 0;
  int launching = 0;  ///< answers "in progress" that are left before the call counts as launched
  std::vector<EnqueuedOp> running;
};

stepcast::pretended::Behaviour& stepcast::pretended::behaviour() {
  static Behaviour one;
  return one;
}
int stepcast::pretended::rank_of(ncclComm_t comm) {
  return comm->rank;
}
int stepcast::pretended::size_of(ncclComm_t comm) {
  return comm->group->size;
}

namespace {

struct Pending {
  ncclComm* comm;
  EnqueuedOp op;
};
thread_local int depth = 0;
thread_local std::vector<Pending> pending;

bool agree(const std::vector<EnqueuedOp>& ops) {
  return std::ranges::all_of(ops, [&](const EnqueuedOp& one) {
    return one->kind == ops[0]->kind && one->count == ops[0]->count && one->root == ops[0]->root;
  });
}

void do_collective(std::vector<EnqueuedOp>& ops) {
  const std::size_t count = ops[0]->count, ranks = ops.size();
  const auto root = static_cast<std::size_t>(ops[0]->root);
  const bool gathers = ops[0]->kind == Op::Kind::all_gather,
             scatters = ops[0]->kind == Op::Kind::reduce_scatter;
  std::vector<float> result(count * (gathers || scatters ? ranks : 1));
  if (gathers) {
    for (std::size_t r = 0; r < ranks; ++r) std::copy_n(ops[r]->from, count, result.data() + r * count);
  } else if (ops[0]->kind == Op::Kind::broadcast) {
    std::copy_n(ops[root]->from, count, result.data());
  } else {
    for (const EnqueuedOp& one : ops)
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += one->from[i];
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    if (ops[0]->kind != Op::Kind::reduce || r == root)
      std::copy_n(result.data() + (scatters ? r * count : 0), gathers ? result.size() : count, ops[r]->to);
    ops[r]->done = true;
  }
}

ncclResult_t enqueue(ncclComm& comm, const EnqueuedOp& op) {
  Group& group = *comm.group;
  comm.running.push_back(op);
  if (op->kind == Op::Kind::send || op->kind == Op::Kind::receive) {
    const bool sends = op->kind == Op::Kind::send;
    auto& waiting = group.messages[sends ? std::pair{comm.rank, op->root} : std::pair{op->root, comm.rank}];
    const auto other =
        std::ranges::find_if(waiting, [&](const EnqueuedOp& one) { return one->kind != op->kind; });
    if (other == waiting.end()) {
      waiting.push_back(op);
      return ncclSuccess;
    }
    const Op &sent = sends ? *op : **other, &got = sends ? **other : *op;
    if (sent.count != got.count) return ncclInvalidArgument;
    std::copy_n(sent.from, sent.count, got.to);
    op->done = (*other)->done = true;
    waiting.erase(other);
    return ncclSuccess;
  }
  const std::size_t place = group.enqueued[static_cast<std::size_t>(comm.rank)]++;
  if (place == group.collectives.size()) group.collectives.emplace_back(static_cast<std::size_t>(group.size));
  std::vector<EnqueuedOp>& all = group.collectives[place];
  all[static_cast<std::size_t>(comm.rank)] = op;
  if (std::ranges::find(all, nullptr) != all.end()) return ncclSuccess;
  if (!agree(all)) return ncclInvalidUsage;
  do_collective(all);
  return ncclSuccess;
}

}  // namespace

ncclResult_t stepcast::pretended::call(ncclComm_t comm, Op op) {
  op.rank = comm->rank;
  {
    const std::lock_guard lock(mutex);
    Behaviour& how = behaviour();
    comm->launching = how.answers_in_progress;
    if (how.calls++ == how.fails_at) return ncclSystemError;
  }
  if (op.count == 0) return ncclSuccess;
  pending.push_back({comm, std::make_shared<Op>(op)});
  if (depth > 0) return ncclSuccess;
  ++depth;
  return ncclGroupEnd();
}

void stepcast::pretended::break_groups() {
  const std::lock_guard lock(mutex);
  for (auto& [id, group] : groups) group->broken = true;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int made = 0;
  const std::lock_guard lock(mutex);
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, &++made, sizeof made);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0 || rank >= ranks) return ncclInvalidArgument;
  const std::lock_guard lock(mutex);
  auto& group = groups[std::string(id.internal, sizeof id.internal)];
  if (group == nullptr) group = std::make_shared<Group>();
  group->size = ranks;
  group->enqueued.resize(static_cast<std::size_t>(ranks));
  ++group->joined;
  *made = new ncclComm{group, rank, stepcast::pretended::behaviour().answers_in_progress, {}};
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(mutex);
  if (comm->launching > 0 && !comm->group->broken) {
    --comm->launching;
    *state = ncclInProgress;
    return ncclSuccess;
  }
  const bool here = comm->group->joined == comm->group->size;
  const bool through = std::ranges::all_of(comm->running, [](const EnqueuedOp& one) { return one->done; });
  *state = comm->group->broken ? ncclRemoteError : here && through ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) {
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const std::lock_guard lock(mutex);
    ++stepcast::pretended::behaviour().aborts;
    if (depth > 0) ++stepcast::pretended::behaviour().aborts_in_group;
    comm->group->broken = true;  // the other ranks get an asynchronous error
  }
  std::erase_if(pending, [comm](const Pending& one) { return one.comm == comm; });
  delete comm;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) {
  return "an error of the pretended NCCL";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  const std::lock_guard lock(mutex);
  ncclResult_t worst = pending.empty() ? ncclSuccess : ncclInProgress;
  for (const Pending& one : pending) {
    const ncclResult_t status = enqueue(*one.comm, one.op);
    if (status != ncclSuccess) worst = status;
  }
  pending.clear();
  return worst;
}
