#include <cuda_runtime_api.h>

#include <cstring>

#include "kernels/cudnn/cuda/handles.hpp"

// Fakes of the CUDA calls that launches make, for tests of kernels without the fake runtime.
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

namespace stepcast::cudnn {
void check(cudaError_t, const char*) {}
}  // namespace stepcast::cudnn
