#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>

#include <cstdint>
#include <functional>
#include <vector>

/// Contents of the fake cuDNN's descriptors.
namespace stepcast::fake {

using Sizes = std::vector<int>;

struct Tensor {
  cudnnDataType_t type{};
  Sizes dims, strides;

  std::int64_t at(const Sizes& place) const {
    std::int64_t found = 0;
    for (std::size_t i = 0; i < place.size(); ++i) found += std::int64_t{place[i]} * strides[i];
    return found;
  }
  std::size_t bytes() const {
    std::size_t last = 1;
    for (std::size_t i = 0; i < dims.size(); ++i) last += static_cast<std::size_t>(dims[i] - 1) * strides[i];
    return last * (type == CUDNN_DATA_FLOAT ? 4 : 2);
  }
};

struct Convolution {
  Sizes pad, stride, dilation;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int groups = 1;
  bool by_graph = false;  ///< of the graph API, which takes any number of channels
};

/// What the fake searches report: an algorithm that fails, one on tensor cores, one whose workspace is too
/// large, one that is slower and one that is slow.
/// Number of searches among the algorithms of the older calls so far.
int searches();
constexpr int kFails = 0, kDirect = 1, kTooLarge = 2, kSlow = 3;
/// Workspace that an algorithm needs with a math type.
constexpr std::size_t workspace_of(int algorithm, cudnnMathType_t math) {
  return algorithm == kTooLarge                           ? std::size_t{1} << 40
         : algorithm == kDirect && math == CUDNN_FMA_MATH ? 8192
                                                          : 4096;
}
/// True if tensors and filter have the strides of one layout, packed, which real calls want; a layout of
/// channels innermost with odd channels of 2 bytes has no algorithm.
bool has_algorithm(const Tensor& x, const Tensor& w, const Tensor& y);
/// True if tensors and filter have the strides of one layout, packed.
bool has_one_layout(const Tensor& x, const Tensor& w, const Tensor& y);

/// An element of any type in memory.
inline float read(cudaDataType type, const void* memory, std::int64_t at) {
  if (type == CUDA_R_16F) return __half2float(static_cast<const __half*>(memory)[at]);
  if (type == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(memory)[at]);
  return static_cast<const float*>(memory)[at];
}
inline void write(cudaDataType type, void* memory, std::int64_t at, double value) {
  const float number = value;
  if (type == CUDA_R_16F) {
    static_cast<__half*>(memory)[at] = __float2half(number);
  } else if (type == CUDA_R_16BF) {
    static_cast<__nv_bfloat16*>(memory)[at] = __float2bfloat16(number);
  } else {
    static_cast<float*>(memory)[at] = number;
  }
}
inline cudaDataType cuda_type(cudnnDataType_t type) {
  if (type == CUDNN_DATA_HALF) return CUDA_R_16F;
  return type == CUDNN_DATA_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}
inline float read(const Tensor& tensor, const void* memory, std::int64_t at) {
  return read(cuda_type(tensor.type), memory, at);
}
inline void write(const Tensor& tensor, void* memory, std::int64_t at, double value) {
  write(cuda_type(tensor.type), memory, at, value);
}

/// Calls visit(position) for all positions of a box.
void for_each(const Sizes& dims, const std::function<void(const Sizes&)>& visit);

inline Tensor& of(cudnnTensorDescriptor_t one) {
  return *reinterpret_cast<Tensor*>(one);
}
inline Tensor& of(cudnnFilterDescriptor_t one) {
  return *reinterpret_cast<Tensor*>(one);
}
inline Convolution& of(cudnnConvolutionDescriptor_t one) {
  return *reinterpret_cast<Convolution*>(one);
}

}  // namespace stepcast::fake
