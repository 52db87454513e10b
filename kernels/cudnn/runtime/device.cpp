#include "kernels/cudnn/runtime/device.hpp"

#include <fmt/format.h>

#include <algorithm>

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
