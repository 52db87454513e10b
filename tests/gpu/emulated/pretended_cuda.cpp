#include "pretended_cuda.hpp"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

// A fake of CUDA's runtime: device memory is the host's memory, work is done when it is started, and so
// streams and events never wait.

namespace {

using Clock = std::chrono::steady_clock;

/// A pointer that is not null, for handles that are only passed on.
template <class Handle>
cudaError_t make(Handle* handle) {
  *handle = static_cast<Handle>(std::malloc(sizeof(Clock::time_point)));
  return cudaSuccess;
}

/// The status of calls that a graph cannot contain.
cudaError_t outside_of_graphs() {
  return stepcast::pretended::capturing() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t copied(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "an error of the pretended GPU";
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "a pretended GPU");
  properties->totalGlobalMem = std::size_t{1} << 26;  // an eighth of it is the workspace
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* name, int, int) {
  std::strcpy(name, "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = *all = std::size_t{1} << 30;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (outside_of_graphs() != cudaSuccess) return outside_of_graphs();
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xff, bytes);  // memory that was never written holds NaN
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return outside_of_graphs();
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return cudaMalloc(memory, bytes);
}
cudaError_t cudaFreeHost(void* memory) {
  return cudaFree(memory);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  return copied(to, from, bytes);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return make(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::free(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return outside_of_graphs();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned) {
  return event == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return make(event);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return make(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  const Clock::time_point now = Clock::now();
  return copied(event, &now, sizeof now);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event == nullptr ? cudaErrorInvalidValue : outside_of_graphs();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return cudaEventSynchronize(event);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  Clock::time_point from, to;
  copied(&from, begin, sizeof from);
  copied(&to, end, sizeof to);
  *milliseconds = std::chrono::duration<float, std::milli>(to - from).count();
  return cudaSuccess;
}
