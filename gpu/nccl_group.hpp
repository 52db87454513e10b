#pragma once

#include <functional>
#include <memory>
#include <string>

#include "validate/group_call.hpp"
#include "validate/rank_device.hpp"

namespace stepcast {

/// One rank's end of a communicator of NCCL, with a stream of its own beside the device's work.
///
/// Calls do not block in NCCL: its state is asked for again and again, so that an error of another rank, or
/// its silence, ends in an aborted communicator and RankLost.
/// Source: NCCL's user guide, "Fault tolerance" (ncclCommGetAsyncError, ncclCommAbort).
class NcclGroup {
 public:
  virtual ~NcclGroup() = default;

  /// Starts when the work before `ready` is done; returns when the result is there. @throws RankLost
  virtual void run(const GroupCall& call, float* memory, std::int64_t elements,
                   const DeviceMemory::Mark& ready) = 0;
};

struct NcclEnd {
  int device = 0;                   ///< as CUDA counts them
  int rank = 0;                     ///< of the run, for messages
  int number = 0, size = 1;         ///< in the group
  int most_blocks = 0;              ///< that NCCL may take of the GPU at once; 0: as it likes
  double patience = 30;             ///< without a result, seconds
  std::function<void()> beat = {};  ///< called again and again while it waits
};

/// What one rank of a group makes and all of it need: bytes.
/// @throws InputError where this program was built without NCCL
std::string nccl_unique_id();

/// All ranks of the group call it. @throws RankLost
std::unique_ptr<NcclGroup> join_nccl(const NcclEnd& end, const std::string& unique_id);

}  // namespace stepcast
