#pragma once

#include <nccl.h>

#include <chrono>
#include <string>

#include "gpu/nccl_group.hpp"

namespace stepcast {

/// NCCL's communicator, in the mode in which its calls return at once, and what is known of its state.
class NcclCommunicator {
 public:
  /// @throws RankLost
  NcclCommunicator(const NcclEnd& end, const std::string& unique_id);
  NcclCommunicator(const NcclCommunicator&) = delete;
  ~NcclCommunicator();

  ncclComm_t get() const { return communicator_; }

  /// From now on patience is counted; `what` is named where it ends.
  void begin(const char* what);
  /// Inside a group of calls, where nothing starts before its end.
  void queue(ncclResult_t status, const char* call);
  /// Until NCCL has started what it was told.
  void settle(ncclResult_t status, const char* call);
  /// While something is under way.
  void look();

 private:
  std::string words(ncclResult_t status) const;
  [[noreturn]] void fail(const std::string& why);

  NcclEnd end_;
  ncclComm_t communicator_ = nullptr;
  const char* doing_ = "";
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace stepcast
