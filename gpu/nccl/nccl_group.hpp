#pragma once

#ifdef STEPCAST_HAS_NCCL
#include <nccl.h>
#endif

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "kernels/cudnn/runtime/device.hpp"
#include "runtime/collectives/rank_collectives.hpp"
#include "runtime/devices/rank_device.hpp"

namespace stepcast {

/// One rank's membership in an NCCL communicator, with a stream of its own, which overlaps with the device's.
///
/// Calls do not block inside NCCL: its state is polled, so that an error or the silence of another rank ends
/// in an aborted communicator and RankLost. Source: NCCL's user guide, "Fault tolerance"
/// (ncclCommGetAsyncError, ncclCommAbort).
class NcclGroup {
 public:
  virtual ~NcclGroup() = default;

  /// Starts when the work before `ready` is done; returns when the result is there. @throws RankLost
  virtual void run(const LibraryCollective& call, float* memory, std::int64_t elements,
                   const DeviceMemory::Event& ready) = 0;
};

/// This rank, as it joins a communicator.
struct NcclRank {
  int device = 0;                      ///< CUDA's number of the GPU
  int rank = 0;                        ///< rank in the whole run, for error messages
  int group_rank = 0, group_size = 1;  ///< rank in the communicator, and the number of its ranks
  int max_blocks = 0;                  ///< thread blocks that NCCL may use at once; 0: NCCL decides
  double timeout = 30;                 ///< longest wait for other ranks [s]
  std::function<void()> on_wait = {};  ///< called repeatedly while this rank waits
};

/// A new unique id (bytes), which rank 0 of a communicator makes and all its ranks need.
/// @throws InputError if this program was built without NCCL
std::string nccl_unique_id();

/// Joins the communicator; all its ranks call this.
/// @throws RankLost; InputError if this program was built without NCCL
std::unique_ptr<NcclGroup> join_nccl(const NcclRank& self, const std::string& unique_id);

#ifdef STEPCAST_HAS_NCCL
/// A non-blocking NCCL communicator, with the checks that its calls need.
class NcclCommunicator {
 public:
  /// @throws RankLost
  NcclCommunicator(const NcclRank& self, const std::string& unique_id);
  NcclCommunicator(const NcclCommunicator&) = delete;
  ~NcclCommunicator();

  ncclComm_t get() const { return communicator_; }
  /// Starts the timeout of an operation, which error messages name. @throws RankLost with the message of an
  /// earlier failure, after which there is no communicator
  void start_operation(const char* name);
  /// Throws unless a call succeeded or is in progress; for calls between ncclGroupStart and ncclGroupEnd.
  /// @throws RankLost
  void require(ncclResult_t status, const char* call);
  /// Begin and end a group of calls, which NCCL starts together. A failure inside the group ends the group
  /// before it aborts the communicator, because NCCL's state of a thread must not stay within a group.
  /// @throws RankLost
  void start_group();
  void end_group();
  /// Returns when NCCL has enqueued the work of a call. @throws RankLost
  void wait_until_enqueued(ncclResult_t status, const char* call);
  /// Checks for errors and for the timeout while work is in progress. @throws RankLost
  void poll();

 private:
  std::string describe(ncclResult_t status) const;
  [[noreturn]] void fail(const std::string& why);

  NcclRank self_;
  ncclComm_t communicator_ = nullptr;
  const char* operation_ = "";
  bool in_group_ = false;
  std::string failure_;  ///< empty: none yet
  std::chrono::steady_clock::time_point started_;
};

/// A stream for NCCL, separate from the stream of the device's work.
class NcclStream {
 public:
  explicit NcclStream(int device);

  cudaStream_t get() const { return stream_.get(); }
  /// Work that this thread enqueues from now on starts when the work before the event is done (null: at
  /// once).
  void begin_after(const DeviceMemory::Event& event);
  /// Returns when all enqueued work is done. @throws RankLost
  void finish(NcclCommunicator& communicator);

 private:
  int device_;
  cudnn::Stream stream_;
  cudnn::Event done_;
};
#endif

}  // namespace stepcast
