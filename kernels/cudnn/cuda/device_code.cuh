#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cudnn/cuda/element.hpp"
#include "kernels/cudnn/cuda/handles.hpp"

/// Helpers of all CUDA kernels; for .cu files only.
namespace stepcast::cudnn {

constexpr int kThreads = 256;

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__half x) {
  return __half2float(x);
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

template <class T>
__device__ T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

/// Passes a type to a generic lambda.
template <class T>
struct Type {
  using type = T;
};

/// An array whose elements have this type, which with_type found.
template <class T>
__host__ __device__ const T* as(const void* array) {
  return static_cast<const T*>(array);
}
template <class T>
__host__ __device__ T* as(void* array) {
  return static_cast<T*>(array);
}

/// Calls `run(Type<T>())` with the C++ type of an element.
template <class Run>
void with_type(Element element, const Run& run) {
  switch (element) {
    case Element::f32:
      return run(Type<float>());
    case Element::f16:
      return run(Type<__half>());
    case Element::bf16:
      return run(Type<__nv_bfloat16>());
  }
}

/// Elements in 16 bytes, the most that one access of a thread reads or writes.
template <class T>
constexpr int kPack = 16 / sizeof(T);

/// V neighbouring elements, which one access of a thread reads or writes (as aligned_vector of PyTorch).
template <class T, int V>
struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) AlignedVector {
  T v[V];
};

template <int V, class T>
__device__ AlignedVector<T, V> load(const T* from) {
  return *reinterpret_cast<const AlignedVector<T, V>*>(from);
}
template <class T, int V>
__device__ void store(const AlignedVector<T, V>& vector, T* to) {
  *reinterpret_cast<AlignedVector<T, V>*>(to) = vector;
}

template <class To, class From, int V>
__device__ AlignedVector<To, V> converted(const AlignedVector<From, V>& from) {
  AlignedVector<To, V> to;
  for (int j = 0; j < V; ++j) to.v[j] = from_float<To>(to_float(from.v[j]));
  return to;
}

/// True if all arrays start at multiples of 16 bytes; a GPU loads packs only from there, and segments of
/// gradients may start anywhere.
template <class... T>
__host__ __device__ bool are_aligned(const T*... arrays) {
  return (reinterpret_cast<std::uintptr_t>(arrays) | ...) % 16 == 0;
}

template <class T, int K>
struct Inputs {
  const T* at[K];
};

template <class T, int K>
bool are_aligned(const Inputs<T, K>& in, const T* out) {
  bool aligned = are_aligned(out);
  for (const T* one : in.at) aligned = aligned && are_aligned(one);
  return aligned;
}

/// Added to the variances that norms divide by.
constexpr float kEpsilon = 1e-5f;

/// Number of blocks for this many elements, limited to what keeps a GPU full; kernels loop over the rest.
inline unsigned blocks_for(std::int64_t elements) {
  constexpr std::int64_t kMost = 132 * 32;
  const std::int64_t needed = (elements + kThreads - 1) / kThreads;
  return needed < 1 ? 1 : needed > kMost ? kMost : needed;
}

__device__ inline std::int64_t first_index() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t index_step() {
  return std::int64_t{gridDim.x} * blockDim.x;
}

/// Calls `run` with a zero of the index type for this many elements: 32 bits if they suffice, because a
/// 64-bit division takes a GPU some hundred instructions.
template <class Run>
void with_index(std::int64_t elements, const Run& run) {
  if (elements <= std::int64_t{1} << 30)
    return run(std::int32_t{});  // the step of the loop over the grid is far below 2^30
  run(std::int64_t{});
}

/// Divides indices by one size.
template <class Index>
struct Divisor {
  Index size = 1;
  Divisor() = default;
  explicit Divisor(std::int64_t by) : size(by) {}
  __device__ Index quotient(Index index) const { return index / size; }
};

/// Divides 32-bit indices below 2^31 by one multiplication and one shift: i / size = (high(i f) + i) >> s,
/// where high() are the upper 32 bits of the product, s = ceil(log2 size) and f = floor(2^32 (2^s - size) /
/// size) + 1. Source: T. Granlund, P. L. Montgomery, Division by Invariant Integers using Multiplication,
/// PLDI 1994, figure 4.1, doi:10.1145/178243.178249
template <>
struct Divisor<std::int32_t> {
  std::int32_t size = 1;
  std::uint32_t factor = 1, shift = 0;
  Divisor() = default;
  explicit Divisor(std::int64_t by) : size(by) {
    while (std::int64_t{1} << shift < by) ++shift;
    factor = (((std::int64_t{1} << shift) - by) << 32) / by + 1;
  }
  __device__ std::int32_t quotient(std::int32_t index) const {
    const std::uint32_t i = index;
    const std::uint32_t high = (std::uint64_t{i} * factor) >> 32;
    return (high + i) >> shift;
  }
};

/// Removes the last coordinate from a linear index and returns it.
template <class Index>
__device__ Index take(Index& index, Index size) {
  const Index rest = index / size, coordinate = index - rest * size;
  index = rest;
  return coordinate;
}
template <class Index>
__device__ Index take(Index& index, const Divisor<Index>& size) {
  const Index rest = size.quotient(index), coordinate = index - rest * size.size;
  index = rest;
  return coordinate;
}

/// Call after every launch. @throws GpuError if the kernel could not be started
inline void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}

/// Sum over the threads of a block, returned to all of them. All threads call it; their number is a multiple
/// of 32, at most 1024.
__device__ inline float block_sum(float value) {
  __shared__ float parts[33];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
  __syncthreads();  // waits until all threads have read the parts of an earlier call
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  if (warp == 0) {
    float sum = lane < warps ? parts[lane] : 0.f;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) parts[32] = sum;
  }
  __syncthreads();
  return parts[32];
}

__device__ inline float block_max(float value) {
  __shared__ float parts[33];
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_down_sync(0xffffffffu, value, step));
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
  __syncthreads();
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  if (warp == 0) {
    float most = lane < warps ? parts[lane] : -INFINITY;
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_down_sync(0xffffffffu, most, step));
    if (lane == 0) parts[32] = most;
  }
  __syncthreads();
  return parts[32];
}

}  // namespace stepcast::cudnn
