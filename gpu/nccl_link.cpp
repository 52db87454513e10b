#include "gpu/nccl_link.hpp"

#include "gpu/nccl_stream.hpp"

namespace stepcast {
namespace {

class JoinedLink final : public DeviceLink {
 public:
  JoinedLink(const NcclEnd& end, const std::string& unique_id)
      : stream_(end.device), communicator_(end, unique_id) {}

  void send(const float* from, std::int64_t floats, const DeviceMemory::Mark& after) override {
    stream_.begin_after(after);
    communicator_.begin("sending a message");
    communicator_.settle(
        ncclSend(from, static_cast<std::size_t>(floats), ncclFloat, 1, communicator_.get(), stream_.get()),
        "ncclSend");
    stream_.finish(communicator_);
  }

  void receive(float* to, std::int64_t floats, const DeviceMemory::Mark& after) override {
    stream_.begin_after(after);
    communicator_.begin("receiving a message");
    communicator_.settle(
        ncclRecv(to, static_cast<std::size_t>(floats), ncclFloat, 0, communicator_.get(), stream_.get()),
        "ncclRecv");
    stream_.finish(communicator_);
  }

 private:
  NcclStream stream_;
  NcclCommunicator communicator_;
};

}  // namespace

std::unique_ptr<DeviceLink> join_nccl_link(const NcclEnd& end, const std::string& unique_id) {
  return std::make_unique<JoinedLink>(end, unique_id);
}

}  // namespace stepcast
