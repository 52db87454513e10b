#include "fake_nccl.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "fake_streams.hpp"

// A fake of NCCL in non-blocking mode, among ranks that are threads. A call is "in progress" until the
// library has launched it; from then on the communicator's state is "success", and the operation stands in
// its stream until the streams of all ranks have come to theirs. If another rank has failed, it stands there
// until its own communicator is aborted. Checks the manual's rules for in-place memory and for operations
// that must not be mixed. It replaces the library's functions.

namespace {

using namespace stepcast;
using fake::Op;
using StartedOp = std::shared_ptr<Op>;

/// All ranks of a communicator.
struct Group {
  int size = 0, joined = 0;
  ncclResult_t error = ncclSuccess;                 ///< asynchronous error of all its ranks
  std::vector<std::vector<StartedOp>> collectives;  ///< in order, one operation of each rank
  std::map<std::pair<int, int>, std::vector<StartedOp>> sent, received;  ///< by sender and receiver, in order
};

std::mutex mutex;
std::map<std::string, std::shared_ptr<Group>> groups;

/// One rank's membership, which operations in streams refer to after the communicator is gone.
struct Membership {
  std::shared_ptr<Group> group;
  int rank = 0;
  std::size_t collectives = 0;  ///< number of collectives that this rank has started
  std::map<int, std::size_t> messages_to = {}, messages_from = {};
  bool aborted = false;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<Membership> member;
  int launching = 0;  ///< answers "in progress" that are left before the calls are launched
  std::vector<StartedOp> unlaunched;
  bool blocking = false;  ///< calls are launched when the function returns
};

fake::Behaviour& fake::behaviour() {
  static Behaviour one;
  return one;
}
int fake::rank_of(ncclComm_t comm) {
  return comm->member->rank;
}
int fake::size_of(ncclComm_t comm) {
  return comm->member->group->size;
}

namespace {

struct PendingCall {
  ncclComm* comm;
  StartedOp op;
};
thread_local int depth = 0;
thread_local std::vector<PendingCall> pending;

bool agree(const std::vector<StartedOp>& ops) {
  return std::ranges::all_of(ops, [&](const StartedOp& one) {
    return one->kind == ops[0]->kind && one->count == ops[0]->count && one->root == ops[0]->root;
  });
}

void do_collective(std::vector<StartedOp>& ops) {
  const std::size_t count = ops[0]->count, ranks = ops.size();
  const std::size_t root = ops[0]->root;
  const bool gathers = ops[0]->kind == Op::Kind::all_gather,
             scatters = ops[0]->kind == Op::Kind::reduce_scatter;
  std::vector<float> result(count * (gathers || scatters ? ranks : 1));
  if (gathers) {
    for (std::size_t r = 0; r < ranks; ++r) std::copy_n(ops[r]->from, count, result.data() + r * count);
  } else if (ops[0]->kind == Op::Kind::broadcast) {
    std::copy_n(ops[root]->from, count, result.data());
  } else {
    for (const StartedOp& one : ops)
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += one->from[i];
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    if (ops[0]->kind != Op::Kind::reduce || r == root)
      std::copy_n(result.data() + (scatters ? r * count : 0), gathers ? result.size() : count, ops[r]->to);
    ops[r]->done = true;
  }
}

template <class List>
auto& at_place(List& list, std::size_t place) {
  if (place >= list.size()) list.resize(place + 1);
  return list[place];
}

/// Does the collective in this place if all ranks have come to it.
void try_collective(Group& group, std::size_t place) {
  std::vector<StartedOp>& all = group.collectives[place];
  const auto missing = [](const StartedOp& one) { return one == nullptr || !one->begun; };
  if (std::ranges::any_of(all, missing)) return;
  if (agree(all)) return do_collective(all);
  group.error = ncclInvalidUsage;
}

void try_message(Group& group, std::pair<int, int> pair, std::size_t place) {
  const StartedOp &sent = at_place(group.sent[pair], place), &got = at_place(group.received[pair], place);
  if (sent == nullptr || got == nullptr || !sent->begun || !got->begun) return;
  if (sent->count != got->count) {
    group.error = ncclInvalidArgument;
    return;
  }
  std::copy_n(sent->from, sent->count, got->to);
  sent->done = got->done = true;
}

/// Puts the operation into its place in the order of the communicator's operations. @return what tries it
std::function<void()> placed(Membership& member, const StartedOp& op) {
  Group& group = *member.group;
  if (op->kind == Op::Kind::send || op->kind == Op::Kind::receive) {
    const bool sends = op->kind == Op::Kind::send;
    const auto pair = sends ? std::pair{member.rank, op->root} : std::pair{op->root, member.rank};
    const std::size_t place = (sends ? member.messages_to : member.messages_from)[op->root]++;
    at_place((sends ? group.sent : group.received)[pair], place) = op;
    return [&group, pair, place] { try_message(group, pair, place); };
  }
  const std::size_t place = member.collectives++;
  std::vector<StartedOp>& all = at_place(group.collectives, place);
  all.resize(group.size);
  all[member.rank] = op;
  return [&group, place] { try_collective(group, place); };
}

/// An operation with what tries to do it.
struct LaunchedOp {
  StartedOp op;
  std::function<void()> try_it;
};

/// The operations of a group of calls stand in their stream, as one kernel, until all are done or this rank
/// gives up.
void launch(const std::shared_ptr<Membership>& member, const std::vector<LaunchedOp>& ops) {
  if (ops.empty()) return;
  fake::enqueue_waiting(ops.front().op->stream, [member, ops] {
    const std::lock_guard lock(mutex);
    for (const LaunchedOp& one : ops) one.op->begun = true;
    for (const LaunchedOp& one : ops) {
      if (!one.op->done && member->group->error == ncclSuccess) one.try_it();
    }
    return member->aborted || std::ranges::all_of(ops, [](const LaunchedOp& one) { return one.op->done; });
  });
}

/// Launches the calls that a communicator was given.
void launch_calls(ncclComm& comm) {
  std::vector<LaunchedOp> launched;
  {
    const std::lock_guard lock(mutex);
    for (const StartedOp& op : std::exchange(comm.unlaunched, {}))
      launched.push_back({op, placed(*comm.member, op)});
  }
  launch(comm.member, launched);
}

}  // namespace

ncclResult_t fake::call(ncclComm_t comm, Op op) {
  if (behaviour().on_call) behaviour().on_call(op);
  {
    const std::lock_guard lock(mutex);
    if (behaviour().calls++ == behaviour().fails_at) return ncclSystemError;
  }
  if (op.count == 0) return ncclSuccess;
  pending.push_back({comm, std::make_shared<Op>(op)});
  if (depth > 0) return ncclSuccess;
  ++depth;
  return ncclGroupEnd();
}

void fake::fail_next_call() {
  const std::lock_guard lock(mutex);
  behaviour().fails_at = behaviour().calls;
}

void fake::break_groups() {
  const std::lock_guard lock(mutex);
  for (auto& [id, group] : groups) group->error = ncclRemoteError;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int made = 0;
  const std::lock_guard lock(mutex);
  std::memset(id->internal, 0, sizeof id->internal);
  const int number = ++made;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0 || rank >= ranks) return ncclInvalidArgument;
  const std::lock_guard lock(mutex);
  auto& group = groups[std::string(id.internal, sizeof id.internal)];
  if (group == nullptr) group = std::make_shared<Group>();
  group->size = ranks;
  ++group->joined;
  fake::Behaviour& how = fake::behaviour();
  how.blocks.push_back(config->maxCTAs);
  *made = new ncclComm{
      std::make_shared<Membership>(Membership{.group = group, .rank = rank}), how.answers_in_progress, {}};
  return ncclInProgress;
}
/// One communicator of one rank.
ncclResult_t ncclCommInitAll(ncclComm_t* made, int ranks, const int*) {
  if (ranks != 1) return ncclInvalidArgument;
  const auto group = std::make_shared<Group>();
  group->size = group->joined = 1;
  *made = new ncclComm{std::make_shared<Membership>(Membership{.group = group}), 0, {}, true};
  return ncclSuccess;
}
ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  {
    const std::lock_guard lock(mutex);
    const Group& group = *comm->member->group;
    *state = group.error;
    if (group.error != ncclSuccess) return ncclSuccess;
    *state = ncclInProgress;
    if (group.joined < group.size || comm->launching-- > 0) return ncclSuccess;
    *state = ncclSuccess;
  }
  launch_calls(*comm);
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (fake::behaviour().on_leaving) fake::behaviour().on_leaving(fake::rank_of(comm));
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const std::lock_guard lock(mutex);
    ++fake::behaviour().aborts;
    if (depth > 0) ++fake::behaviour().aborts_in_group;
    comm->member->aborted = true;
    comm->member->group->error = ncclRemoteError;  // of the other ranks
  }
  std::erase_if(pending, [comm](const PendingCall& one) { return one.comm == comm; });
  delete comm;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) {
  return "an error of the fake NCCL";
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
  ncclResult_t state = ncclSuccess;
  std::set<ncclComm*> blocking;
  {
    const std::lock_guard lock(mutex);
    for (const PendingCall& one : std::exchange(pending, {})) {
      one.comm->unlaunched.push_back(one.op);
      if (one.comm->blocking) {
        blocking.insert(one.comm);
      } else {
        one.comm->launching = fake::behaviour().answers_in_progress;
        state = ncclInProgress;
      }
    }
  }
  for (ncclComm* comm : blocking) launch_calls(*comm);
  return state;
}
