#include "fake_cuda.hpp"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "fake_streams.hpp"

// A fake of CUDA's runtime: device memory is the host's memory. Streams and events are in
// fake_streams.cpp.

namespace {

std::mutex memory_gate;  ///< guards the maps below
/// Memory of cudaMallocHost; copies from and to other memory of the host are done at once.
std::map<const char*, std::size_t> pinned;
std::map<const void*, std::size_t> allocated;
std::set<int> used;  ///< GPUs that have a context

/// PRETENDED_FAULT=die:BYTES or hang:BYTES: a copy of so many bytes to the host ends the process or never
/// returns.
void meet_fault(std::size_t bytes) {
  const char* fault = std::getenv("PRETENDED_FAULT");
  if (fault == nullptr) return;
  if (fault == "die:" + std::to_string(bytes)) std::abort();
  while (fault == "hang:" + std::to_string(bytes)) pause();
}

void make_context() {
  const std::lock_guard lock(memory_gate);
  used.insert(stepcast::fake::current_device());
}

bool is_pinned(const void* memory) {
  const std::lock_guard lock(memory_gate);
  const auto* at = static_cast<const char*>(memory);
  auto after = pinned.upper_bound(at);
  return after != pinned.begin() && (--after, at < after->first + after->second);
}

/// The status of calls that a graph cannot contain.
cudaError_t outside_of_graphs() {
  return stepcast::fake::capturing() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace

int stepcast::fake::allocations_of(std::size_t bytes) {
  const std::lock_guard lock(memory_gate);
  return std::ranges::count_if(allocated, [bytes](const auto& one) { return one.second == bytes; });
}

std::set<int> stepcast::fake::contexts() {
  const std::lock_guard lock(memory_gate);
  return used;
}
void stepcast::fake::forget_contexts() {
  const std::lock_guard lock(memory_gate);
  used.clear();
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "an error of the fake GPU";
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = stepcast::fake::device_count();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= stepcast::fake::device_count()) return cudaErrorInvalidDevice;
  stepcast::fake::current_device() = device;
  make_context();  // since CUDA 12
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  const char* name = std::getenv("PRETENDED_GPU");
  std::strcpy(properties->name, name == nullptr ? "a fake GPU" : name);
  properties->totalGlobalMem = std::size_t{1} << 26;  // an eighth of it is the workspace
  return cudaSuccess;
}
/// A memory of 1.024 TB/s.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  if (which != cudaDevAttrMemoryClockRate && which != cudaDevAttrGlobalMemoryBusWidth)
    return cudaErrorInvalidValue;
  *value = which == cudaDevAttrMemoryClockRate ? 1000000 : 4096;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* name, int, int) {
  std::strcpy(name, "0000:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  make_context();
  *free = *all = std::size_t{1} << 30;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (outside_of_graphs() != cudaSuccess) return outside_of_graphs();
  make_context();
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xff, bytes);  // memory that was never written holds NaN
  const std::lock_guard lock(memory_gate);
  allocated[*memory] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  stepcast::fake::drain_all();  // waits for the device, as the real one does
  {
    const std::lock_guard lock(memory_gate);
    allocated.erase(memory);
  }
  std::free(memory);
  return outside_of_graphs();
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  const cudaError_t status = cudaMalloc(memory, bytes);
  const std::lock_guard lock(memory_gate);
  pinned[static_cast<const char*>(*memory)] = bytes;
  return status;
}
cudaError_t cudaFreeHost(void* memory) {
  {
    const std::lock_guard lock(memory_gate);
    pinned.erase(static_cast<const char*>(memory));
  }
  return cudaFree(memory);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (kind == cudaMemcpyDeviceToHost) meet_fault(bytes);
  const bool now = (kind == cudaMemcpyHostToDevice && !is_pinned(from)) ||
                   (kind == cudaMemcpyDeviceToHost && !is_pinned(to));
  stepcast::fake::enqueue(stream, [=] { std::memmove(to, from, bytes); });
  if (now) stepcast::fake::drain(stream);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  stepcast::fake::enqueue(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}
