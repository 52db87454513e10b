#include "kernels/cudnn/runtime/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/error.hpp"

namespace stepcast {

const char* to_string(GpuPrecision precision) {
  switch (precision) {
    case GpuPrecision::f32:
      return "f32";
    case GpuPrecision::tf32:
      return "tf32";
    case GpuPrecision::f16:
      return "f16";
    case GpuPrecision::bf16:
      break;
  }
  return "bf16";
}

int device_number(const std::string& text) {
  const std::string prefix = "cuda:";
  const std::string digits = text.starts_with(prefix) ? text.substr(prefix.size()) : "";
  const bool number = !digits.empty() && digits.size() <= 4 &&
                      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number) throw InputError(fmt::format("--device: expected cuda:NUMBER, got \"{}\"", text));
  return std::stoi(digits);
}

int gpu_count() {
  int count = 0;
  const bool known = cudaGetDeviceCount(&count) == cudaSuccess;
  cudaGetLastError();
  return known ? count : 0;
}

namespace cudnn {

std::shared_ptr<void> allocate_bytes(std::size_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  check(cudaMalloc(&memory, size), "cudaMalloc");
  std::shared_ptr<void> owner(memory, [](void* pointer) { cudaFree(pointer); });
  check(cudaMemsetAsync(memory, 0, size, stream), "cudaMemsetAsync");
  return owner;
}

Stream make_stream() {
  return make_owned<Stream>(
      [](cudaStream_t* made) { return cudaStreamCreateWithFlags(made, cudaStreamNonBlocking); },
      "cudaStreamCreateWithFlags");
}

void require_device(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status != cudaSuccess && status != cudaErrorNoDevice) {
    throw InputError(fmt::format("--device cuda:{}: there is no GPU that CUDA can use: {}", device,
                                 cudaGetErrorString(status)));
  }
  if (device < count) return;
  throw InputError(fmt::format("--device cuda:{}: CUDA sees {} GPU{} here", device,
                               count == 0 ? "no" : std::to_string(count), count == 1 ? "" : "s"));
}

Device::Device(const GpuOptions& wanted) : options(wanted) {
  require_device(options.device);
  check(cudaSetDevice(options.device), "cudaSetDevice");
  check(cudaGetDeviceProperties(&properties, options.device), "cudaGetDeviceProperties");
  stream = make_stream();
  dnn = make_owned<decltype(dnn)>(cudnnCreate, "cudnnCreate");
  check(cudnnSetStream(dnn.get(), stream.get()), "cudnnSetStream");
  blas = make_owned<decltype(blas)>(cublasCreate_v2, "cublasCreate");
  check(cublasSetStream(blas.get(), stream.get()), "cublasSetStream");
  lt = make_owned<decltype(lt)>(cublasLtCreate, "cublasLtCreate");
  // Leaves most of a small GPU's memory for tensors.
  workspace.bytes = std::min(options.workspace, properties.totalGlobalMem / 8);
  workspace.memory = allocate_bytes(workspace.bytes, stream.get());
  check(cublasSetWorkspace(blas.get(), workspace.data(), workspace.bytes), "cublasSetWorkspace");
}

void Device::raise_clocks() {
  constexpr std::chrono::milliseconds kRise(150);  // as before captures (step_events.hpp)
  if (clocks_are_high) return;
  for (const auto end = std::chrono::steady_clock::now() + kRise; std::chrono::steady_clock::now() < end;) {
    check(cudaMemsetAsync(workspace.data(), 0, workspace.bytes, stream.get()), "cudaMemsetAsync");
    check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  }
  clocks_are_high = true;
}

namespace {

/// Bits of numbers in (-1, 1), by a linear congruential generator: the values only have to be no zeros.
std::vector<std::byte> drawn_block(std::size_t bytes, Element element) {
  std::vector<std::byte> block(bytes);
  const std::size_t each = bytes_of(element);
  std::uint32_t state = 1;
  for (std::size_t at = 0; at + each <= bytes; at += each) {
    state = state * 1664525U + 1013904223U;
    const float value = static_cast<float>(state >> 8) / (1 << 23) - 1;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const std::uint16_t half = (state >> 16 & 0x8000U) | 0x3000U | (state >> 8 & 0xfffU);
    const std::uint16_t upper = bits >> 16;
    if (element == Element::f32) std::memcpy(&block[at], &bits, each);
    if (element == Element::f16) std::memcpy(&block[at], &half, each);  // +-2^-3 to 2^1
    if (element == Element::bf16) std::memcpy(&block[at], &upper, each);
  }
  return block;
}

}  // namespace

void Device::draw(void* memory, std::size_t bytes, Element element) {
  constexpr std::size_t kBlock = 1 << 20;
  const std::vector<std::byte> block = drawn_block(std::min(bytes, kBlock), element);
  check(cudaMemcpyAsync(memory, block.data(), block.size(), cudaMemcpyHostToDevice, stream.get()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");  // the block is the host's
  for (std::size_t done = block.size(); done < bytes; done += std::min(done, bytes - done)) {
    check(cudaMemcpyAsync(static_cast<std::byte*>(memory) + done, memory, std::min(done, bytes - done),
                          cudaMemcpyDeviceToDevice, stream.get()),
          "cudaMemcpyAsync");
  }
}

std::shared_ptr<void> Device::memory_within_pass(std::size_t bytes) {
  std::weak_ptr<void>& known = within_pass_[bytes];
  std::shared_ptr<void> memory = known.lock();
  if (memory == nullptr) known = memory = allocate_bytes(bytes, stream.get());
  return memory;
}

Element Device::element() const {
  if (options.precision == GpuPrecision::f16) return Element::f16;
  return options.precision == GpuPrecision::bf16 ? Element::bf16 : Element::f32;
}

cudnnDataType_t Device::cudnn_type() const {
  if (options.precision == GpuPrecision::f16) return CUDNN_DATA_HALF;
  return options.precision == GpuPrecision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

cudaDataType_t Device::cuda_type() const {
  if (options.precision == GpuPrecision::f16) return CUDA_R_16F;
  return options.precision == GpuPrecision::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

cudnnMathType_t Device::cudnn_math() const {
  if (options.precision == GpuPrecision::f32) return CUDNN_FMA_MATH;
  return options.precision == GpuPrecision::tf32 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
}

cublasComputeType_t Device::cublas_compute() const {
  return options.precision == GpuPrecision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace cudnn
}  // namespace stepcast

namespace stepcast::cudnn {

cudaEvent_t cuda_event(const DeviceMemory::Event& event) {
  return static_cast<cudaEvent_t>(event.get());
}

WorkGraph::WorkGraph(std::shared_ptr<Device> device, const std::function<void()>& enqueue)
    : device_(std::move(device)) {
  const std::lock_guard lock(device_->recording);
  const cudaStream_t stream = device_->stream.get();
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (const std::exception&) {
    static_cast<void>(cudaStreamEndCapture(stream, &graph));  // otherwise the stream stays unusable
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  graph_ = Graph(graph);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  executable_ = Executable(executable);
}

void WorkGraph::start() {
  check(cudaGraphLaunch(executable_.get(), device_->stream.get()), "cudaGraphLaunch");
}

GpuMemory::GpuMemory(std::shared_ptr<Device> device)
    : device_(std::move(device)), down_(make_stream()), up_(make_stream()) {}

void GpuMemory::select() const {
  check(cudaSetDevice(device_->options.device), "cudaSetDevice");
}

DeviceMemory::Event GpuMemory::record_event() {
  select();
  auto event = make_event();
  const std::lock_guard lock(device_->recording);
  record(event.get(), device_->stream.get());
  return event;
}

void GpuMemory::wait(const Event& event) {
  check(cudaEventSynchronize(cuda_event(event)), "cudaEventSynchronize");
}

std::shared_ptr<float> GpuMemory::allocate(std::size_t elements) {
  select();
  const std::lock_guard lock(device_->recording);
  const auto memory = allocate_bytes(elements * sizeof(float), device_->stream.get());
  return {memory, static_cast<float*>(memory.get())};
}

void GpuMemory::copy(const float* from, float* to, std::size_t elements) {
  select();
  const std::lock_guard lock(device_->recording);
  check(cudaMemcpyAsync(to, from, elements * sizeof(float), cudaMemcpyDeviceToDevice, device_->stream.get()),
        "cudaMemcpyAsync");
}

double GpuMemory::seconds(const Event& begin, const Event& end) {
  return seconds_between(cuda_event(begin), cuda_event(end));
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

void GpuMemory::to_host(const Event& after, const float* from, float* to, std::size_t elements) {
  select();
  check(cudaStreamWaitEvent(down_.get(), cuda_event(after), 0), "cudaStreamWaitEvent");
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
