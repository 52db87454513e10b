#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cudnn/element.hpp"
#include "kernels/cudnn/status.hpp"

/// What all kernels share; for .cu files only.
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

/// Names a type for a generic lambda.
template <class T>
struct Type {
  using type = T;
};

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

/// 16 bytes, the most that one load of a thread brings.
template <class T>
struct alignas(16) Pack {
  T v[16 / sizeof(T)];
};

template <class T, int K>
struct Inputs {
  const T* at[K];
};

/// Pieces of gradients start anywhere; a GPU loads packs from multiples of their size only.
template <class T, int K>
bool takes_packs(const Inputs<T, K>& in, const T* out) {
  auto bits = reinterpret_cast<std::uintptr_t>(out);
  for (const T* one : in.at) bits |= reinterpret_cast<std::uintptr_t>(one);
  return bits % 16 == 0;
}

/// As many blocks as the elements need, but no more than keep a GPU full: kernels stride over the rest.
inline unsigned blocks_for(std::int64_t elements) {
  constexpr std::int64_t kMost = 132 * 32;
  const std::int64_t needed = (elements + kThreads - 1) / kThreads;
  return static_cast<unsigned>(needed < 1 ? 1 : needed > kMost ? kMost : needed);
}

__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t index_step() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

/// Calls `run` with a zero of the type that indices of so many elements are counted in: a division of 64 bits
/// takes a GPU some hundred instructions.
template <class Run>
void with_index(std::int64_t elements, const Run& run) {
  if (elements <= std::int64_t{1} << 30) return run(std::int32_t{});  // the step of a grid is far below 2^30
  run(std::int64_t{});
}

/// Takes the last coordinate off a linear index.
template <class Index>
__device__ Index take(Index& index, Index size) {
  const Index rest = index / size, coordinate = index - rest * size;
  index = rest;
  return coordinate;
}

/// After every launch: whether it could be started.
inline void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}

/// Sum over a block of a multiple of 32 threads, at most 1024, for all of them. Called by all threads.
__device__ inline float block_sum(float value) {
  __shared__ float parts[33];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
  __syncthreads();  // parts of an earlier call have been read
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
