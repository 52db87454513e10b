#include "gpu/nccl_group.hpp"

#include <stdexcept>

#include "gpu/nccl_stream.hpp"
#include "kernels/cudnn/elements.hpp"

namespace stepcast {
namespace {

using namespace cudnn;

class JoinedGroup final : public NcclGroup {
 public:
  JoinedGroup(const NcclEnd& end, const std::string& unique_id)
      : end_(end), stream_(end.device), communicator_(end, unique_id) {}

  void run(const GroupCall& call, float* memory, std::int64_t elements,
           const DeviceMemory::Mark& ready) override {
    stream_.begin_after(ready);
    start(call, memory, static_cast<std::size_t>(elements));
    stream_.finish(communicator_);
  }

 private:
  void start(const GroupCall& call, float* memory, std::size_t elements) {
    switch (call.kind) {
      case GroupCall::Kind::all_reduce:
        communicator_.begin("an all-reduce");
        return communicator_.settle(
            ncclAllReduce(memory, memory, elements, ncclFloat, ncclSum, communicator_.get(), stream_.get()),
            "ncclAllReduce");
      case GroupCall::Kind::broadcast:
        communicator_.begin("a broadcast");
        return communicator_.settle(
            ncclBroadcast(memory, memory, elements, ncclFloat, call.root, communicator_.get(), stream_.get()),
            "ncclBroadcast");
      case GroupCall::Kind::reduce:
        communicator_.begin("a reduce");
        return communicator_.settle(ncclReduce(memory, memory, elements, ncclFloat, ncclSum, call.root,
                                               communicator_.get(), stream_.get()),
                                    "ncclReduce");
      case GroupCall::Kind::reduce_scatter:
        communicator_.begin("a reduce-scatter");
        return scatter(call, memory, elements);
      case GroupCall::Kind::all_gather:
        communicator_.begin("an all-gather");
        return gather(call, memory, elements);
      case GroupCall::Kind::exchange:
        communicator_.begin("an exchange");
        for (const Round& round : call.rounds) exchange(round, memory);
    }
  }

  /// NCCL's own call cuts into equal parts only; others are as many reduces at once.
  void scatter(const GroupCall& call, float* memory, std::size_t elements) {
    if (call.even) {
      const std::size_t each = elements / static_cast<std::size_t>(end_.size);
      return communicator_.settle(
          ncclReduceScatter(memory, memory + static_cast<std::size_t>(end_.number) * each, each, ncclFloat,
                            ncclSum, communicator_.get(), stream_.get()),
          "ncclReduceScatter");
    }
    communicator_.settle(ncclGroupStart(), "ncclGroupStart");
    for (const GroupCall::Part& part : call.parts) {
      float* at = memory + part.slice.begin;
      communicator_.queue(ncclReduce(at, at, static_cast<std::size_t>(part.slice.size()), ncclFloat, ncclSum,
                                     part.owner, communicator_.get(), stream_.get()),
                          "ncclReduce");
    }
    communicator_.settle(ncclGroupEnd(), "ncclGroupEnd");
  }

  void gather(const GroupCall& call, float* memory, std::size_t elements) {
    if (call.even) {
      const std::size_t each = elements / static_cast<std::size_t>(end_.size);
      return communicator_.settle(ncclAllGather(memory + static_cast<std::size_t>(end_.number) * each, memory,
                                                each, ncclFloat, communicator_.get(), stream_.get()),
                                  "ncclAllGather");
    }
    communicator_.settle(ncclGroupStart(), "ncclGroupStart");
    for (const GroupCall::Part& part : call.parts) {
      float* at = memory + part.slice.begin;
      communicator_.queue(ncclBroadcast(at, at, static_cast<std::size_t>(part.slice.size()), ncclFloat,
                                        part.owner, communicator_.get(), stream_.get()),
                          "ncclBroadcast");
    }
    communicator_.settle(ncclGroupEnd(), "ncclGroupEnd");
  }

  /// What comes goes through memory of its own: sends of the round read what was there before it.
  void exchange(const Round& round, float* memory) {
    std::size_t coming = 0;
    for (const Move& move : round) {
      if (move.way == Move::Way::receive) coming += static_cast<std::size_t>(move.slice.size());
    }
    float* arrived = room_for(coming);
    communicator_.settle(ncclGroupStart(), "ncclGroupStart");
    std::size_t at = 0;
    for (const Move& move : round) {
      const auto size = static_cast<std::size_t>(move.slice.size());
      if (move.way == Move::Way::send) {
        communicator_.queue(ncclSend(memory + move.slice.begin, size, ncclFloat, move.peer,
                                     communicator_.get(), stream_.get()),
                            "ncclSend");
      } else {
        communicator_.queue(
            ncclRecv(arrived + at, size, ncclFloat, move.peer, communicator_.get(), stream_.get()),
            "ncclRecv");
        at += size;
      }
    }
    communicator_.settle(ncclGroupEnd(), "ncclGroupEnd");
    at = 0;
    for (const Move& move : round) {
      if (move.way == Move::Way::send) continue;
      take(arrived + at, memory + move.slice.begin, move);
      at += static_cast<std::size_t>(move.slice.size());
    }
  }

  void take(const float* from, float* to, const Move& move) {
    if (move.arrival == Arrival::add)
      return sum({to, from}, to, Element::f32, move.slice.size(), stream_.get());
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(move.slice.size()) * sizeof(float),
                          cudaMemcpyDeviceToDevice, stream_.get()),
          "cudaMemcpyAsync");
  }

  /// Only between calls that are through: nothing reads the old memory then, nor in the round before, which
  /// the stream has behind it.
  float* room_for(std::size_t elements) {
    if (elements > room_elements_) {
      check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
      room_ = allocate_bytes(elements * sizeof(float), stream_.get());
      room_elements_ = elements;
    }
    return static_cast<float*>(room_.get());
  }

  NcclEnd end_;
  NcclStream stream_;
  NcclCommunicator communicator_;
  std::shared_ptr<void> room_;
  std::size_t room_elements_ = 0;
};

}  // namespace

std::string nccl_unique_id() {
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) throw std::runtime_error("ncclGetUniqueId failed");
  return {id.internal, sizeof id.internal};
}

std::unique_ptr<NcclGroup> join_nccl(const NcclEnd& end, const std::string& unique_id) {
  return std::make_unique<JoinedGroup>(end, unique_id);
}

}  // namespace stepcast
