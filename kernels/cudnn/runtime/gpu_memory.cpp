#include "kernels/cudnn/runtime/gpu_memory.hpp"

#include <algorithm>

namespace stepcast::cudnn {

cudaEvent_t event_of(const DeviceMemory::Mark& mark) {
  return static_cast<cudaEvent_t>(mark.get());
}

GpuMemory::GpuMemory(std::shared_ptr<Device> device)
    : device_(std::move(device)), down_(make_stream()), up_(make_stream()) {}

void GpuMemory::select() const {
  check(cudaSetDevice(device_->options.device), "cudaSetDevice");
}

DeviceMemory::Mark GpuMemory::mark() {
  select();
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  const Mark mark(event, [](void* made) { cudaEventDestroy(static_cast<cudaEvent_t>(made)); });
  check(cudaEventRecord(event, device_->stream.get()), "cudaEventRecord");
  return mark;
}

void GpuMemory::wait(const Mark& mark) {
  check(cudaEventSynchronize(event_of(mark)), "cudaEventSynchronize");
}

std::shared_ptr<float> GpuMemory::allocate(std::size_t elements) {
  select();
  const auto memory = allocate_bytes(elements * sizeof(float), device_->stream.get());
  return {memory, static_cast<float*>(memory.get())};
}

void GpuMemory::copy(const float* from, float* to, std::size_t elements) {
  select();
  check(cudaMemcpyAsync(to, from, elements * sizeof(float), cudaMemcpyDeviceToDevice, device_->stream.get()),
        "cudaMemcpyAsync");
}

double GpuMemory::seconds(const Mark& begin, const Mark& end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, event_of(begin), event_of(end)), "cudaEventElapsedTime");
  return 1e-3 * milliseconds;
}

std::shared_ptr<float> GpuMemory::host_memory(std::size_t elements) {
  select();
  void* memory = nullptr;
  const std::size_t bytes = std::max<std::size_t>(elements, 1) * sizeof(float);
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  const std::shared_ptr<float> owner(static_cast<float*>(memory), [](float* made) { cudaFreeHost(made); });
  std::fill_n(owner.get(), elements, 0.0F);
  return owner;
}

void GpuMemory::to_host(const Mark& after, const float* from, float* to, std::size_t elements) {
  select();
  check(cudaStreamWaitEvent(down_.get(), event_of(after), 0), "cudaStreamWaitEvent");
  check(cudaMemcpyAsync(to, from, elements * sizeof(float), cudaMemcpyDeviceToHost, down_.get()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(down_.get()), "cudaStreamSynchronize");
}

void GpuMemory::to_device(const float* from, float* to, std::size_t elements) {
  select();
  check(cudaMemcpyAsync(to, from, elements * sizeof(float), cudaMemcpyHostToDevice, up_.get()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(up_.get()), "cudaStreamSynchronize");
}

}  // namespace stepcast::cudnn
