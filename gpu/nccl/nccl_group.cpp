#include "gpu/nccl/nccl_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "kernels/cudnn/cuda/elements.hpp"

namespace stepcast {

#ifdef STEPCAST_HAS_NCCL
NcclCommunicator::NcclCommunicator(const NcclRank& self, const std::string& unique_id) : self_(self) {
  ncclUniqueId id;
  if (unique_id.size() != sizeof id.internal)
    throw std::invalid_argument("expected a unique id of NCCL, got another number of bytes");
  std::memcpy(id.internal, unique_id.data(), sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (self_.max_blocks > 0) config.maxCTAs = self_.max_blocks;
  start_operation("joining the group");
  wait_until_enqueued(ncclCommInitRankConfig(&communicator_, self_.group_size, id, self_.group_rank, &config),
                      "ncclCommInitRankConfig");
}

NcclCommunicator::~NcclCommunicator() {
  if (communicator_ == nullptr) return;
  try {
    start_operation("leaving the group");
    wait_until_enqueued(ncclCommFinalize(communicator_), "ncclCommFinalize");
    ncclCommDestroy(communicator_);
  } catch (const std::exception&) {  // the communicator was aborted
  }
}

void NcclCommunicator::start_operation(const char* name) {
  if (!failure_.empty()) throw RankLost(failure_);
  operation_ = name;
  started_ = std::chrono::steady_clock::now();
}

void NcclCommunicator::require(ncclResult_t status, const char* call) {
  if (status != ncclSuccess && status != ncclInProgress) fail(fmt::format("{}: {}", call, describe(status)));
}

void NcclCommunicator::start_group() {
  require(ncclGroupStart(), "ncclGroupStart");
  in_group_ = true;
}

void NcclCommunicator::end_group() {
  in_group_ = false;
  wait_until_enqueued(ncclGroupEnd(), "ncclGroupEnd");
}

void NcclCommunicator::wait_until_enqueued(ncclResult_t status, const char* call) {
  require(status, call);
  while (status == ncclInProgress) {
    poll();
    if (ncclCommGetAsyncError(communicator_, &status) != ncclSuccess) fail("ncclCommGetAsyncError failed");
    require(status, call);
  }
}

void NcclCommunicator::poll() {
  ncclResult_t state = ncclSuccess;
  if (ncclCommGetAsyncError(communicator_, &state) != ncclSuccess) fail("ncclCommGetAsyncError failed");
  if (state != ncclSuccess && state != ncclInProgress) fail(describe(state));
  const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  if (waited > self_.timeout)
    fail(fmt::format("no progress within {:g} s: another rank is missing or stuck", self_.timeout));
  if (self_.on_wait) self_.on_wait();
  std::this_thread::yield();
}

std::string NcclCommunicator::describe(ncclResult_t status) const {
  const char* last = communicator_ == nullptr ? nullptr : ncclGetLastError(communicator_);
  const std::string more = last == nullptr || *last == '\0' ? "" : fmt::format(" ({})", last);
  return ncclGetErrorString(status) + more;
}

void NcclCommunicator::fail(const std::string& why) {
  if (std::exchange(in_group_, false)) static_cast<void>(ncclGroupEnd());
  if (communicator_ != nullptr) ncclCommAbort(communicator_);
  communicator_ = nullptr;
  failure_ = fmt::format("rank {} on cuda:{}: NCCL gave up during {}: {}", self_.rank, self_.device,
                         operation_, why);
  throw RankLost(failure_);
}

namespace {

using cudnn::check;

/// Makes a GPU the current one of this thread; each thread has its own.
int made_current(int device) {
  check(cudaSetDevice(device), "cudaSetDevice");
  return device;
}

}  // namespace

NcclStream::NcclStream(int device)
    : device_(made_current(device)),
      stream_(cudnn::make_stream()),
      done_(cudnn::make_owned<cudnn::Event>(
          [](cudaEvent_t* made) { return cudaEventCreateWithFlags(made, cudaEventDisableTiming); },
          "cudaEventCreateWithFlags")) {}

void NcclStream::begin_after(const DeviceMemory::Event& event) {
  made_current(device_);
  if (event) check(cudaStreamWaitEvent(get(), cudnn::cuda_event(event), 0), "cudaStreamWaitEvent");
}

void NcclStream::finish(NcclCommunicator& communicator) {
  check(cudaEventRecord(done_.get(), get()), "cudaEventRecord");
  cudaError_t state = cudaSuccess;
  while ((state = cudaEventQuery(done_.get())) == cudaErrorNotReady) {
    cudaGetLastError();  // clears "not ready", which counts as an error
    communicator.poll();
  }
  check(state, "cudaEventQuery");
}

namespace {

using namespace cudnn;

class JoinedGroup final : public NcclGroup {
 public:
  JoinedGroup(const NcclRank& self, const std::string& unique_id)
      : self_(self), stream_(self.device), communicator_(self, unique_id) {
    connect();
  }

  void run(const LibraryCollective& call, float* memory, std::int64_t elements,
           const DeviceMemory::Event& ready) override {
    stream_.begin_after(ready);
    start(call, memory, elements);
    stream_.finish(communicator_);
  }

 private:
  /// NCCL connects the ranks in their first operation. All ranks are here now; later one of them may wait for
  /// another communicator that also has to connect.
  void connect() {
    float* one = receive_memory(1);
    communicator_.start_operation("connecting the group");
    communicator_.wait_until_enqueued(
        ncclAllReduce(one, one, 1, ncclFloat, ncclSum, communicator_.get(), stream_.get()), "ncclAllReduce");
    stream_.finish(communicator_);
  }

  void start(const LibraryCollective& call, float* memory, std::size_t elements) {
    switch (call.kind) {
      case LibraryCollective::Kind::all_reduce:
        communicator_.start_operation("an all-reduce");
        return communicator_.wait_until_enqueued(
            ncclAllReduce(memory, memory, elements, ncclFloat, ncclSum, communicator_.get(), stream_.get()),
            "ncclAllReduce");
      case LibraryCollective::Kind::broadcast:
        communicator_.start_operation("a broadcast");
        return communicator_.wait_until_enqueued(
            ncclBroadcast(memory, memory, elements, ncclFloat, call.root, communicator_.get(), stream_.get()),
            "ncclBroadcast");
      case LibraryCollective::Kind::reduce:
        communicator_.start_operation("a reduce");
        return communicator_.wait_until_enqueued(ncclReduce(memory, memory, elements, ncclFloat, ncclSum,
                                                            call.root, communicator_.get(), stream_.get()),
                                                 "ncclReduce");
      case LibraryCollective::Kind::reduce_scatter:
        communicator_.start_operation("a reduce-scatter");
        return scatter(call, memory, elements);
      case LibraryCollective::Kind::all_gather:
        communicator_.start_operation("an all-gather");
        return gather(call, memory, elements);
      case LibraryCollective::Kind::exchange:
        communicator_.start_operation("an exchange");
        receive_memory(most_received(call));  // before any rank waits for this one
        for (const Round& round : call.rounds) exchange(round, memory);
    }
  }

  /// NCCL's reduce-scatter needs equal parts; unequal ones are one reduce per part, grouped.
  void scatter(const LibraryCollective& call, float* memory, std::size_t elements) {
    if (call.even) {
      const std::size_t each = elements / self_.group_size;
      return communicator_.wait_until_enqueued(
          ncclReduceScatter(memory, memory + self_.group_rank * each, each, ncclFloat, ncclSum,
                            communicator_.get(), stream_.get()),
          "ncclReduceScatter");
    }
    communicator_.start_group();
    for (const LibraryCollective::Part& part : call.parts) {
      float* at = memory + part.slice.begin;
      communicator_.require(ncclReduce(at, at, part.slice.size(), ncclFloat, ncclSum, part.owner,
                                       communicator_.get(), stream_.get()),
                            "ncclReduce");
    }
    communicator_.end_group();
  }

  void gather(const LibraryCollective& call, float* memory, std::size_t elements) {
    if (call.even) {
      const std::size_t each = elements / self_.group_size;
      return communicator_.wait_until_enqueued(ncclAllGather(memory + self_.group_rank * each, memory, each,
                                                             ncclFloat, communicator_.get(), stream_.get()),
                                               "ncclAllGather");
    }
    communicator_.start_group();
    for (const LibraryCollective::Part& part : call.parts) {
      float* at = memory + part.slice.begin;
      communicator_.require(
          ncclBroadcast(at, at, part.slice.size(), ncclFloat, part.owner, communicator_.get(), stream_.get()),
          "ncclBroadcast");
    }
    communicator_.end_group();
  }

  static std::size_t received_elements(const Round& round) {
    std::size_t elements = 0;
    for (const Transfer& transfer : round) {
      if (transfer.way == Transfer::Way::receive) elements += transfer.slice.size();
    }
    return elements;
  }
  static std::size_t most_received(const LibraryCollective& call) {
    std::size_t most = 0;
    for (const Round& round : call.rounds) most = std::max(most, received_elements(round));
    return most;
  }

  /// Receives into separate memory, because sends of the same round read the values before the round.
  void exchange(const Round& round, float* memory) {
    float* received = receive_memory(0);
    communicator_.start_group();
    std::size_t at = 0;
    for (const Transfer& transfer : round) {
      const std::size_t size = transfer.slice.size();
      if (transfer.way == Transfer::Way::send) {
        communicator_.require(ncclSend(memory + transfer.slice.begin, size, ncclFloat, transfer.peer,
                                       communicator_.get(), stream_.get()),
                              "ncclSend");
      } else {
        communicator_.require(
            ncclRecv(received + at, size, ncclFloat, transfer.peer, communicator_.get(), stream_.get()),
            "ncclRecv");
        at += size;
      }
    }
    communicator_.end_group();
    at = 0;
    for (const Transfer& transfer : round) {
      if (transfer.way == Transfer::Way::send) continue;
      store(received + at, memory + transfer.slice.begin, transfer);
      at += transfer.slice.size();
    }
  }

  void store(const float* from, float* to, const Transfer& transfer) {
    if (transfer.on_receive == OnReceive::reduce)
      return sum({to, from}, to, Element::f32, transfer.slice.size(), stream_.get());
    check(cudaMemcpyAsync(to, from, transfer.slice.size() * sizeof(float), cudaMemcpyDeviceToDevice,
                          stream_.get()),
          "cudaMemcpyAsync");
  }

  /// Memory for received values. Grows only between finished calls, when nothing reads the old memory.
  float* receive_memory(std::size_t elements) {
    if (elements > receive_elements_) {
      receive_memory_ = allocate_bytes(elements * sizeof(float), stream_.get());
      receive_elements_ = elements;
    }
    return static_cast<float*>(receive_memory_.get());
  }

  NcclRank self_;
  NcclStream stream_;
  NcclCommunicator communicator_;
  std::shared_ptr<void> receive_memory_;
  std::size_t receive_elements_ = 0;
};

}  // namespace

std::string nccl_unique_id() {
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) throw std::runtime_error("ncclGetUniqueId failed");
  return {id.internal, sizeof id.internal};
}

std::unique_ptr<NcclGroup> join_nccl(const NcclRank& self, const std::string& unique_id) {
  return std::make_unique<JoinedGroup>(self, unique_id);
}
#else

namespace {

[[noreturn]] void refuse() {
  throw InputError("--path: nccl is not available: stepcast-gpu was built without NCCL; use --path host");
}

}  // namespace

std::string nccl_unique_id() {
  refuse();
}

std::unique_ptr<NcclGroup> join_nccl(const NcclRank&, const std::string&) {
  refuse();
}

#endif

}  // namespace stepcast
