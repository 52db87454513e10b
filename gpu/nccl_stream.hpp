#pragma once

#include "gpu/nccl_communicator.hpp"
#include "kernels/cudnn/gpu_memory.hpp"

namespace stepcast {

/// A stream of NCCL's own beside the device's work, and the end of what it was told.
class NcclStream {
 public:
  explicit NcclStream(int device);

  cudaStream_t get() const { return stream_.get(); }
  /// What is told from now on, on this thread, begins when the work before the mark is done (null: at once).
  void begin_after(const DeviceMemory::Mark& mark);
  /// Returns when it is done. @throws RankLost
  void finish(NcclCommunicator& communicator);

 private:
  int device_;
  cudnn::Stream stream_;
  cudnn::Event done_;
};

}  // namespace stepcast
