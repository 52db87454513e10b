#pragma once

#include <algorithm>

#include "kernels/cudnn/cuda/runs.cuh"
#include "kernels/cudnn/cuda/sums.hpp"

/// Sums of two numbers at once over all dimensions except channels, and maps with constants of the channels;
/// for .cu files only. Both are made of functors (runs.cuh). Those of sums have `terms(values, constants of
/// the channel)` of one element's inputs, and behind them the constants of the line if they have any.
namespace stepcast::cudnn {
namespace {

/// The terms dy times (x - mean), and dy, of a channel; its total times `inverse` is the sum of dy times the
/// normalized x.
template <class T>
struct Slopes {
  using Type = T;
  static constexpr int kInputs = 2;
  using Channel = float;
  Inputs<T, 2> in;  ///< x and dy
  const float *mean, *inverse;
  __device__ float channel(std::int64_t c) const { return mean[c]; }
  __device__ float2 terms(const float* v, float mean_of_channel) const {
    return {v[1] * (v[0] - mean_of_channel), v[1]};
  }
  __device__ float2 total(float2 sum, std::int64_t c) const { return {sum.x * inverse[c], sum.y}; }
};

/// A functor that also stores a number for each element, `kept_value(values)`, in an array `kept`.
template <class F>
concept Keeps = requires(const F& f) {
  f.kept;
};
/// A functor whose sums over a channel are not yet those that are wanted.
template <class F>
concept Scales = requires(const F& f) {
  f.total(float2{}, std::int64_t{});
};

/// Adds the terms of a run to `sums`, element by element. The constants are those of its C channels.
template <class F, int W, int C>
__device__ void add_terms(const F& f, const Runs<F, W>& runs, std::int64_t at,
                          const typename F::Channel* channels, float2* sums) {
  [[maybe_unused]] AlignedVector<typename F::Type, W> kept;
  for (int j = 0; j < W; ++j) {
    float v[F::kInputs];
    runs.values(j, v);
    if constexpr (Keeps<F>) kept.v[j] = from_float<typename F::Type>(f.kept_value(v));
    float2 terms;
    if constexpr (ByLine<F>)
      terms = f.terms(v, channels[j % C], runs.line);
    else
      terms = f.terms(v, channels[j % C]);
    sums[j].x += terms.x;
    sums[j].y += terms.y;
  }
  if constexpr (Keeps<F>) store(kept, f.kept + W * at);
}

template <class F>
__device__ void write_part(const F& f, float2 sum, std::int64_t channels, std::int64_t c, float2* parts) {
  if constexpr (Scales<F>) sum = f.total(sum, c);
  parts[blockIdx.y * channels + c] = sum;
}

/// Parts of sums over {outer, channels}: each block of the grid {channels, parts} adds lines of at most 32 W
/// channels. Moves n e bytes per input, as much for what is kept, and 8 bytes per channel and part.
template <class F, int W>
__global__ __launch_bounds__(kThreads, kColumnBlocks<F, W>) void sum_columns(F f, std::int64_t outer,
                                                                             std::int64_t channels,
                                                                             float2* parts) {
  __shared__ float2 sums[W][kThreads + 16 / W];  // wider than needed: threads of a warp use all banks
  typename F::Channel own[W];
  constants_of_columns<W>(f, channels, own);
  float2 sum[W] = {};
  Columns(outer, channels / W, false).visit<F, W>(f, [&](const Runs<F, W>& runs, std::int64_t at) {
    add_terms<F, W, W>(f, runs, at, own, sum);
  });
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (int j = 0; j < W; ++j) sums[j][thread] = sum[j];
  __syncthreads();
  for (unsigned column = thread; column < blockDim.x * W; column += kThreads) {
    const std::int64_t c = std::int64_t{blockIdx.x} * blockDim.x * W + column;
    float2 total{0.f, 0.f};
    for (unsigned line = 0; line < blockDim.y; ++line) {
      const float2 one = sums[column % W][line * blockDim.x + column / W];
      total.x += one.x;
      total.y += one.y;
    }
    if (c < channels) write_part(f, total, channels, c, parts);
  }
}

/// The same over {outer, channels, inner}: a block adds planes of one channel.
template <class F, int W>
__global__ __launch_bounds__(kThreads, kPlaneBlocks) void sum_planes(F f, Planes planes, float2* parts) {
  const typename F::Channel own = f.channel(blockIdx.x);
  float2 sum[W] = {};
  planes.visit<F, W>(
      f, [&](const Runs<F, W>& runs, std::int64_t at) { add_terms<F, W, 1>(f, runs, at, &own, sum); });
  for (int j = 1; j < W; ++j) {
    sum[0].x += sum[j].x;
    sum[0].y += sum[j].y;
  }
  const float2 total{block_sum(sum[0].x), block_sum(sum[0].y)};
  if (threadIdx.x == 0) write_part(f, total, planes.channels, blockIdx.x, parts);
}

constexpr int kTogether = 8;  ///< channels of a block that adds parts: 64 bytes of neighbours

/// Blocks of kThreads threads that add the parts of all channels.
unsigned blocks_of_totals(std::int64_t channels) {
  return (channels + kTogether - 1) / kTogether;
}
__device__ std::int64_t channel_of_total() {
  return std::int64_t{blockIdx.x} * kTogether + threadIdx.x % kTogether;
}

/// Sum over the parts of channel_of_total(), valid in the first kTogether threads of the block. All threads
/// call it.
__device__ double2 total_of(const float2* parts, int count, std::int64_t channels) {
  constexpr int kWarps = kThreads / 32;
  __shared__ double2 sums[kWarps][kTogether];
  const std::int64_t c = channel_of_total();
  double2 total{0., 0.};
  for (int k = static_cast<int>(threadIdx.x) / kTogether; c < channels && k < count;
       k += kThreads / kTogether) {
    total.x += parts[k * channels + c].x;
    total.y += parts[k * channels + c].y;
  }
  for (int step = 16; step >= kTogether; step /= 2) {
    total.x += __shfl_down_sync(0xffffffffu, total.x, step);
    total.y += __shfl_down_sync(0xffffffffu, total.y, step);
  }
  if (threadIdx.x % 32 < kTogether) sums[threadIdx.x / 32][threadIdx.x % 32] = total;
  __syncthreads();
  for (int warp = 1; warp < kWarps && threadIdx.x < kTogether; ++warp) {
    total.x += sums[warp][threadIdx.x].x;
    total.y += sums[warp][threadIdx.x].y;
  }
  return total;
}

__global__ void write_totals(const float2* parts, int count, std::int64_t channels, float* first,
                             float* second) {
  const double2 total = total_of(parts, count, channels);
  const std::int64_t c = channel_of_total();
  if (threadIdx.x >= kTogether || c >= channels) return;
  if (first != nullptr) first[c] = total.x;
  if (second != nullptr) second[c] = total.y;
}

/// How a kernel goes over an array: its grid, and the size of its blocks.
struct Launch {
  dim3 grid, block;
  std::int64_t runs;  ///< in a line of columns, or in a plane
  unsigned width;     ///< threads that take neighbouring runs
};

/// @param most  blocks along y at most
template <class F, int W>
Launch launch_for(const Channels& s, std::int64_t most) {
  const bool columns = s.inner == 1;
  const std::int64_t runs = (columns ? s.channels : s.inner) / W;
  unsigned width = 1;
  while (width < runs && width < 32) width *= 2;
  const unsigned lines = kThreads / width;
  const std::int64_t blocks = columns ? (runs + width - 1) / width : s.channels;
  const std::int64_t full = 132 * (columns ? kColumnBlocks<F, W> : 2 * kPlaneBlocks);
  const std::int64_t wanted = std::max<std::int64_t>(1, full / blocks);
  const std::int64_t rows = std::min({wanted, (s.outer + lines - 1) / lines, most});
  const dim3 block = columns ? dim3(width, lines) : dim3(kThreads);
  return {dim3(blocks, rows), block, runs, width};
}

/// Elements of a run: as many as 16 bytes hold, or one if lines, planes or addresses are no multiples of
/// that.
template <class T>
int run_of(const Channels& s, bool aligned) {
  return aligned && (s.inner == 1 ? s.channels : s.inner) % kPack<T> == 0 ? kPack<T> : 1;
}

template <class F, int W>
int start_sums(const F& f, const Channels& s, const Scratch& scratch, cudaStream_t stream) {
  const auto room = static_cast<std::int64_t>(scratch.bytes / sizeof(float2)) / s.channels;
  if (room < 1) throw GpuError("sums: the workspace is too small; give a larger --workspace");
  auto* parts = static_cast<float2*>(scratch.data);
  const Launch l = launch_for<F, W>(s, room);
  if (s.inner == 1) {
    sum_columns<F, W><<<l.grid, l.block, 0, stream>>>(f, s.outer, s.channels, parts);
  } else {
    const Planes planes{s.outer, s.channels, l.runs, l.width, false};
    sum_planes<F, W><<<l.grid, l.block, 0, stream>>>(f, planes, parts);
  }
  check_launch("sums over channels");
  return l.grid.y;
}

/// Writes the sums of parts of the elements. @return number of parts
template <class F>
int sum_parts(const F& f, const Channels& s, const Scratch& scratch, cudaStream_t stream) {
  using T = typename F::Type;
  bool aligned = are_aligned(f.in, f.in.at[0]);
  if constexpr (Keeps<F>) aligned = are_aligned(f.in, f.kept);
  if (run_of<T>(s, aligned) == 1) return start_sums<F, 1>(f, s, scratch, stream);
  return start_sums<F, kPack<T>>(f, s, scratch, stream);
}

template <class F>
void sum_into(const F& f, const Channels& s, float* first, float* second, const Scratch& scratch,
              cudaStream_t stream) {
  const int count = sum_parts(f, s, scratch, stream);
  write_totals<<<blocks_of_totals(s.channels), kThreads, 0, stream>>>(
      static_cast<const float2*>(scratch.data), count, s.channels, first, second);
  check_launch("write_totals");
}

/// out[i] = f({in[0][i], ...}, constants of i's channel).
template <class T, int K, class G>
struct Mapped {
  using Type = T;
  static constexpr int kInputs = K;
  using Channel = typename G::Channel;
  Inputs<T, K> in;
  T* out;
  G f;
  __device__ Channel channel(std::int64_t c) const { return f.of(c); }

  /// @param own  of the C channels of the run
  template <int W, int C>
  __device__ void write(const Runs<Mapped, W>& runs, std::int64_t at, const Channel* own) const {
    AlignedVector<T, W> result;
    for (int j = 0; j < W; ++j) {
      float v[K];
      runs.values(j, v);
      result.v[j] = from_float<T>(f(v, own[j % C]));
    }
    store(result, out + W * at);
  }
};

/// Maps {outer, channels} with the grid of sum_columns. Moves n e bytes per input and for the result. Maps go
/// backwards, because the caches still hold the end of what the sums before them read.
template <class F, int W>
__global__ __launch_bounds__(kThreads, kColumnBlocks<F, W>) void map_columns(F f, std::int64_t outer,
                                                                             std::int64_t channels) {
  typename F::Channel own[W];
  constants_of_columns<W>(f, channels, own);
  Columns(outer, channels / W, true).visit<F, W>(f, [&](const Runs<F, W>& runs, std::int64_t at) {
    f.template write<W, W>(runs, at, own);
  });
}

/// The same over {outer, channels, inner}: a block maps planes of one channel.
template <class F, int W>
__global__ __launch_bounds__(kThreads, kPlaneBlocks) void map_planes(F f, Planes planes) {
  const typename F::Channel own = f.channel(blockIdx.x);
  planes.visit<F, W>(
      f, [&](const Runs<F, W>& runs, std::int64_t at) { f.template write<W, 1>(runs, at, &own); });
}

template <class F, int W>
void start_map(const F& f, const Channels& s, cudaStream_t stream) {
  const Launch l = launch_for<F, W>(s, s.outer);
  if (s.inner == 1) {
    map_columns<F, W><<<l.grid, l.block, 0, stream>>>(f, s.outer, s.channels);
  } else {
    const Planes planes{s.outer, s.channels, l.runs, l.width, true};
    map_planes<F, W><<<l.grid, l.block, 0, stream>>>(f, planes);
  }
  check_launch("map by channels");
}

template <class T, int K, class G>
void map_by_channel(const G& g, const Channels& shape, const Inputs<T, K>& in, T* out, cudaStream_t stream) {
  using F = Mapped<T, K, G>;
  const F f{in, out, g};
  if (run_of<T>(shape, are_aligned(in, out)) == 1) return start_map<F, 1>(f, shape, stream);
  start_map<F, kPack<T>>(f, shape, stream);
}

}  // namespace
}  // namespace stepcast::cudnn
