#include "kernels/cudnn/cuda/handles.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"

namespace stepcast::cudnn {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error; the next call would report it again
  if (status == cudaErrorMemoryAllocation) {
    throw LimitError(fmt::format("{}: the GPU's memory is full; take a smaller batch", call));
  }
  throw GpuError(fmt::format("{}: {}", call, cudaGetErrorString(status)));
}

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> detail{};
  cudnnGetLastErrorString(detail.data(), detail.size());
  const std::string more = detail[0] == '\0' ? "" : fmt::format(" ({})", detail.data());
  throw GpuError(fmt::format("{}: {}{}", call, cudnnGetErrorString(status), more));
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw GpuError(fmt::format("{}: {}", call, cublasGetStatusString(status)));
}

Event make_event() {
  return make_owned<Event>([](cudaEvent_t* made) { return cudaEventCreate(made); }, "cudaEventCreate");
}

void record(cudaEvent_t event, cudaStream_t stream) {
  check(cudaEventRecord(event, stream), "cudaEventRecord");
}

double seconds_between(cudaEvent_t begin, cudaEvent_t end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  return 1e-3 * milliseconds;
}

}  // namespace stepcast::cudnn
