#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stepcast::cudnn {

/// Times a call that adds work to the stream.
using TimeCall =
    std::function<void(const std::string& name, double bytes, const std::function<void()>& call)>;

/// Arrays on a GPU and the stream on which they are all-reduced.
struct AllReduceArrays {
  int device = 0;
  cudaStream_t stream = nullptr;
  const float* from = nullptr;
  float* to = nullptr;
  std::int64_t elements = 0;  ///< of each array
};

/// Times NCCL's all-reduces in a communicator of one rank, of 1024 to `elements` floats: their overhead
/// without any link. Notes name NCCL's version, or say why NCCL is missing or what failed.
/// @throws std::invalid_argument if `from` is `to`: in place NCCL launches nothing for one rank
void probe_all_reduce(const AllReduceArrays& arrays, const TimeCall& time, std::vector<std::string>& notes);

}  // namespace stepcast::cudnn
