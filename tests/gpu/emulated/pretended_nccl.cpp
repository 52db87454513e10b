#include "pretended_nccl.hpp"

#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

// NCCL in its mode in which calls return at once, among ranks that are threads: what is told is done when all
// ranks have told theirs, in order, and until then a communicator's state is "in progress". Where memory must
// lie in place, and what may not be mixed, is held to the manual. It takes the place of the library's.

namespace {

using stepcast::pretended::Op;
using Told = std::shared_ptr<Op>;

/// All ranks of a communicator.
struct Group {
  int size = 0, joined = 0;
  bool broken = false;
  std::vector<std::vector<Told>> collectives;                 ///< in order, one of each rank
  std::vector<std::size_t> told;                              ///< so many by each rank
  std::map<std::pair<int, int>, std::vector<Told>> messages;  ///< not met yet, by sender and receiver
};

std::mutex mutex;
std::map<std::string, std::shared_ptr<Group>> groups;

}  // namespace

struct ncclComm {
  std::shared_ptr<Group> group;
  int rank = 0;
  std::vector<Told> running;
};

int stepcast::pretended::rank_of(ncclComm_t comm) {
  return comm->rank;
}
int stepcast::pretended::size_of(ncclComm_t comm) {
  return comm->group->size;
}

namespace {

struct Pending {
  ncclComm* comm;
  Told op;
};
thread_local int depth = 0;
thread_local std::vector<Pending> held;

bool agree(const std::vector<Told>& ops) {
  return std::ranges::all_of(ops, [&](const Told& one) {
    return one->kind == ops[0]->kind && one->count == ops[0]->count && one->root == ops[0]->root;
  });
}

void do_collective(std::vector<Told>& ops) {
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
    for (const Told& one : ops)
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += one->from[i];
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    if (ops[0]->kind != Op::Kind::reduce || r == root)
      std::copy_n(result.data() + (scatters ? r * count : 0), gathers ? result.size() : count, ops[r]->to);
    ops[r]->done = true;
  }
}

ncclResult_t tell(ncclComm& comm, const Told& op) {
  Group& group = *comm.group;
  comm.running.push_back(op);
  if (op->kind == Op::Kind::send || op->kind == Op::Kind::receive) {
    const bool sends = op->kind == Op::Kind::send;
    auto& waiting = group.messages[sends ? std::pair{comm.rank, op->root} : std::pair{op->root, comm.rank}];
    const auto other = std::ranges::find_if(waiting, [&](const Told& one) { return one->kind != op->kind; });
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
  const std::size_t place = group.told[static_cast<std::size_t>(comm.rank)]++;
  if (place == group.collectives.size()) group.collectives.emplace_back(static_cast<std::size_t>(group.size));
  std::vector<Told>& all = group.collectives[place];
  all[static_cast<std::size_t>(comm.rank)] = op;
  if (std::ranges::find(all, nullptr) != all.end()) return ncclSuccess;
  if (!agree(all)) return ncclInvalidUsage;
  do_collective(all);
  return ncclSuccess;
}

}  // namespace

ncclResult_t stepcast::pretended::call(ncclComm_t comm, Op op) {
  op.rank = comm->rank;
  if (op.count == 0) return ncclSuccess;
  held.push_back({comm, std::make_shared<Op>(op)});
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
  group->told.resize(static_cast<std::size_t>(ranks));
  ++group->joined;
  *made = new ncclComm{group, rank, {}};
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(mutex);
  const bool here = comm->group->joined == comm->group->size;
  const bool through = std::ranges::all_of(comm->running, [](const Told& one) { return one->done; });
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
  ncclResult_t worst = held.empty() ? ncclSuccess : ncclInProgress;
  for (const Pending& one : held) {
    const ncclResult_t status = tell(*one.comm, one.op);
    if (status != ncclSuccess) worst = status;
  }
  held.clear();
  return worst;
}
