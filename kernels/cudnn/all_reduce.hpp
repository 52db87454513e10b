#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>

namespace stepcast::cudnn {

/// NCCL's all-reduce among one rank, which is this device: its own overhead without any link.
struct LoneAllReduce {
  std::function<void(float* values, std::size_t elements)> start;  ///< on the stream; null: no NCCL
  std::string library;                                             ///< its version, or why it is not there
};
LoneAllReduce make_lone_all_reduce(int device, cudaStream_t stream);

}  // namespace stepcast::cudnn
