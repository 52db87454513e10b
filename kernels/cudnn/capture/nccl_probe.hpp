#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>

namespace stepcast::cudnn {

/// NCCL's all-reduce in a communicator of one rank: its overhead without any link.
struct SingleRankAllReduce {
  /// Starts it on the stream; null without NCCL.
  std::function<void(const float* from, float* to, std::size_t elements)> start;
  std::string library;  ///< NCCL's version, or why NCCL is not available
};
SingleRankAllReduce make_single_rank_all_reduce(int device, cudaStream_t stream);

}  // namespace stepcast::cudnn
