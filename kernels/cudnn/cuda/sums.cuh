#pragma once

#include <algorithm>

#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/sums.hpp"

/// Sums of two numbers at once over all dimensions except channels; for .cu files only. What is summed is a functor
/// with inputs `in` of kInputs arrays of Type, and `terms(values, channel, line)` of one element's inputs.
namespace stepcast::cudnn {
namespace {

constexpr int kColumns = 32, kLines = 8;  // size of a block over contiguous channels
constexpr int kInFlight = 4;              // elements that a thread loads before it adds them

/// The terms dy times the normalized x, and dy; mean and inverse belong to the channel or to the line.
template <class T, bool ByLine>
struct Slopes {
  using Type = T;
  static constexpr int kInputs = 2;
  Inputs<T, 2> in;  ///< x and dy
  const float *mean, *inverse;
  __device__ float2 terms(const float* v, std::int64_t c, std::int64_t o) const {
    const std::int64_t group = ByLine ? o : c;
    return {v[1] * (v[0] - mean[group]) * inverse[group], v[1]};
  }
};

/// A functor that also stores a number for each element, `kept_value(values)`, in an array `kept`.
template <class F>
concept Keeps = requires(const F& f) { f.kept; };

/// The terms of element i, which has channel c and line o.
template <class F>
__device__ float2 terms_at(const F& f, std::int64_t i, std::int64_t c, std::int64_t o) {
  float v[F::kInputs];
  for (int k = 0; k < F::kInputs; ++k) v[k] = to_float(f.in.at[k][i]);
  if constexpr (Keeps<F>) f.kept[i] = from_float<typename F::Type>(f.kept_value(v));
  return f.terms(v, c, o);
}

/// For innermost channels in whole packs: each thread sums the channels of one pack, 16 bytes a load, and has
/// several lines in flight; less would leave most of the memory's bandwidth unused. The block is as wide as the
/// channels have packs, at most a warp.
template <class F>
__global__ void sum_packed_columns(F f, std::int64_t outer, std::int64_t channels, float2* parts) {
  using T = typename F::Type;
  constexpr int kPack = 16 / sizeof(T);
  __shared__ float2 sums[kPack][kThreads];
  const std::int64_t packs = channels / kPack;
  const std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  float2 sum[kPack] = {};
  for (std::int64_t o = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; p < packs && o < outer;
       o += kInFlight * step) {
    Pack<T> loaded[kInFlight][F::kInputs];
    for (int k = 0; k < kInFlight; ++k) {
      for (int i = 0; i < F::kInputs && o + k * step < outer; ++i)
        loaded[k][i] = reinterpret_cast<const Pack<T>*>(f.in.at[i])[(o + k * step) * packs + p];
    }
    for (int k = 0; k < kInFlight && o + k * step < outer; ++k) {
      [[maybe_unused]] Pack<T> kept;
      for (int j = 0; j < kPack; ++j) {
        float v[F::kInputs];
        for (int i = 0; i < F::kInputs; ++i) v[i] = to_float(loaded[k][i].v[j]);
        if constexpr (Keeps<F>) kept.v[j] = from_float<T>(f.kept_value(v));
        const float2 terms = f.terms(v, p * kPack + j, o + k * step);
        sum[j].x += terms.x;
        sum[j].y += terms.y;
      }
      if constexpr (Keeps<F>) reinterpret_cast<Pack<T>*>(f.kept)[(o + k * step) * packs + p] = kept;
    }
  }
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (int j = 0; j < kPack; ++j) sums[j][thread] = sum[j];
  __syncthreads();
  for (unsigned column = thread; column < blockDim.x * kPack; column += kThreads) {
    const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x * kPack + column;
    float2 total{0.f, 0.f};
    for (unsigned line = 0; line < blockDim.y; ++line) {
      const float2 one = sums[column % kPack][line * blockDim.x + column / kPack];
      total.x += one.x;
      total.y += one.y;
    }
    if (c < channels) parts[blockIdx.y * channels + c] = total;
  }
}

/// For other innermost channels: a warp reads neighbouring channels of one line.
template <class F>
__global__ void sum_columns(F f, std::int64_t outer, std::int64_t channels, float2* parts) {
  __shared__ float2 lines[kLines][kColumns];
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * kLines;
  float2 sum{0.f, 0.f};
  if (c < channels) {
    for (std::int64_t o = static_cast<std::int64_t>(blockIdx.y) * kLines + threadIdx.y; o < outer;
         o += kInFlight * step) {
      float2 v[kInFlight];
      for (int k = 0; k < kInFlight; ++k) {
        const std::int64_t at = o + k * step;
        v[k] = at < outer ? terms_at(f, at * channels + c, c, at) : float2{0.f, 0.f};
      }
      for (int k = 0; k < kInFlight; ++k) {
        sum.x += v[k].x;
        sum.y += v[k].y;
      }
    }
  }
  lines[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= channels) return;
  for (int k = 1; k < kLines; ++k) {
    sum.x += lines[k][threadIdx.x].x;
    sum.y += lines[k][threadIdx.x].y;
  }
  parts[blockIdx.y * channels + c] = sum;
}

/// For outer channels: a block sums planes of one channel.
template <class F>
__global__ void sum_planes(F f, std::int64_t outer, std::int64_t channels, std::int64_t inner,
                           float2* parts) {
  const std::int64_t c = blockIdx.x;
  float2 sum{0.f, 0.f};
  for (std::int64_t o = blockIdx.y; o < outer; o += gridDim.y) {
    const std::int64_t begin = (o * channels + c) * inner;
    for (std::int64_t k = threadIdx.x; k < inner; k += blockDim.x) {
      const float2 v = terms_at(f, begin + k, c, o);
      sum.x += v.x;
      sum.y += v.y;
    }
  }
  sum.x = block_sum(sum.x);
  sum.y = block_sum(sum.y);
  if (threadIdx.x == 0) parts[blockIdx.y * channels + c] = sum;
}

/// The first channel of a warp; a warp shares the parts of a channel because a single thread would load them
/// one after the other.
__device__ std::int64_t first_channel() {
  return first_index() / 32;
}
__device__ std::int64_t channel_step() {
  return index_step() / 32;
}

/// Sum over the parts of a channel, valid in the first thread of the warp. All threads of the warp call it.
__device__ double2 total_of(const float2* parts, int count, std::int64_t channels, std::int64_t c) {
  double2 total{0., 0.};
  for (int k = static_cast<int>(threadIdx.x % 32); k < count; k += 32) {
    total.x += parts[k * channels + c].x;
    total.y += parts[k * channels + c].y;
  }
  for (int step = 16; step > 0; step /= 2) {
    total.x += __shfl_down_sync(0xffffffffu, total.x, step);
    total.y += __shfl_down_sync(0xffffffffu, total.y, step);
  }
  return total;
}

__global__ void write_totals(const float2* parts, int count, std::int64_t channels, float* first,
                             float* second) {
  for (std::int64_t c = first_channel(); c < channels; c += channel_step()) {
    const double2 total = total_of(parts, count, channels, c);
    if (threadIdx.x % 32 != 0) continue;
    if (first != nullptr) first[c] = static_cast<float>(total.x);
    if (second != nullptr) second[c] = static_cast<float>(total.y);
  }
}

/// Number of parts per channel: enough blocks to fill a GPU, limited by the scratch memory.
int parts_of(std::int64_t blocks, std::int64_t lines, std::int64_t channels, const Scratch& scratch) {
  const auto room = static_cast<std::int64_t>(scratch.bytes / sizeof(float2)) / channels;
  if (room < 1) throw GpuError("sums: the workspace is too small; give a larger --workspace");
  const std::int64_t wanted = std::max<std::int64_t>(1, 2048 / std::max<std::int64_t>(1, blocks));
  return static_cast<int>(std::min({wanted, std::max<std::int64_t>(1, lines), room, std::int64_t{1024}}));
}

/// @return number of parts
template <class F>
int sum_packed_parts(const F& f, const Channels& s, const Scratch& scratch, cudaStream_t stream) {
  const std::int64_t packs = s.channels / static_cast<std::int64_t>(16 / sizeof(typename F::Type));
  unsigned width = 1;
  while (width < packs && width < 32) width *= 2;
  const unsigned lines = kThreads / width;
  const std::int64_t blocks = (packs + width - 1) / width;
  const int count = parts_of(blocks, (s.outer + lines - 1) / lines, s.channels, scratch);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(count));
  sum_packed_columns<<<grid, dim3(width, lines), 0, stream>>>(f, s.outer, s.channels,
                                                              static_cast<float2*>(scratch.data));
  check_launch("sum_packed_columns");
  return count;
}

/// @return number of parts
template <class F>
int sum_parts(const F& f, const Channels& s, const Scratch& scratch, cudaStream_t stream) {
  auto* parts = static_cast<float2*>(scratch.data);
  constexpr auto kPack = static_cast<std::int64_t>(16 / sizeof(typename F::Type));
  bool aligned = takes_packs(f.in, f.in.at[0]);
  if constexpr (Keeps<F>) aligned = takes_packs(f.in, f.kept);
  if (s.inner == 1 && s.channels % kPack == 0 && aligned) return sum_packed_parts(f, s, scratch, stream);
  if (s.inner == 1) {
    const std::int64_t blocks = (s.channels + kColumns - 1) / kColumns;
    const int count = parts_of(blocks, (s.outer + kLines - 1) / kLines, s.channels, scratch);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(count));
    sum_columns<<<grid, dim3(kColumns, kLines), 0, stream>>>(f, s.outer, s.channels, parts);
    check_launch("sum_columns");
    return count;
  }
  const int count = parts_of(s.channels, s.outer, s.channels, scratch);
  const dim3 grid(static_cast<unsigned>(s.channels), static_cast<unsigned>(count));
  const auto warps = static_cast<unsigned>(std::min<std::int64_t>(8, (s.inner + 31) / 32));
  sum_planes<<<grid, 32 * warps, 0, stream>>>(f, s.outer, s.channels, s.inner, parts);
  check_launch("sum_planes");
  return count;
}

template <class F>
void sum_into(const F& f, const Channels& s, float* first, float* second, const Scratch& scratch,
              cudaStream_t stream) {
  const int count = sum_parts(f, s, scratch, stream);
  write_totals<<<blocks_for(32 * s.channels), kThreads, 0, stream>>>(static_cast<const float2*>(scratch.data),
                                                                     count, s.channels, first, second);
  check_launch("write_totals");
}

}  // namespace
}  // namespace stepcast::cudnn
