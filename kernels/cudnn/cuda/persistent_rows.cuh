#pragma once

#include "kernels/cudnn/cuda/device_code.cuh"

/// Kernels over rows of at most 1,024 packs of 16 bytes: one warp, or one block where a warp cannot hold it,
/// reads a row once and keeps it in registers. For rows.cu, which has kernels for longer rows and for rows
/// that do not begin at packs; those read a row two or three times, mostly from a cache.
namespace stepcast::cudnn {

constexpr int kMostPacks = 4;  ///< of a thread: with more, registers limit the warps that wait for memory

/// Calls `run(Type<T>(), threads of a row as a constant, blocks of kThreads threads, packs of a row)` if such
/// rows fit into the registers.
/// @param aligned  all arrays start at packs
/// @return whether they can
template <class Run>
bool with_persistent_rows(std::int64_t rows, std::int64_t length, Element element, bool aligned,
                          const Run& run) {
  bool fits = false;
  with_type(element, [&](auto type) {
    constexpr int V = kPack<typename decltype(type)::type>;
    const std::int64_t packs = length / V;
    fits = aligned && length % V == 0 && packs <= kThreads * kMostPacks;
    if (!fits) return;
    const auto start = [&](auto threads) {
      constexpr int kRows = kThreads / decltype(threads)::value;
      run(type, threads, static_cast<unsigned>((rows + kRows - 1) / kRows), static_cast<int>(packs));
    };
    packs <= 32 * kMostPacks ? start(std::integral_constant<int, 32>())
                             : start(std::integral_constant<int, kThreads>());
  });
  return fits;
}

/// Sum over the threads of a row, for all of them.
template <int Threads>
__device__ float row_sum(float value) {
  if constexpr (Threads == 32) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
  } else {
    return block_sum(value);
  }
}
template <int Threads>
__device__ float row_max(float value) {
  if constexpr (Threads == 32) {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
  } else {
    return block_max(value);
  }
}

template <int Threads>
__device__ std::int64_t row_of_thread() {
  return std::int64_t{blockIdx.x} * (kThreads / Threads) + threadIdx.x / Threads;
}

/// Calls `run(k, first element)` for the packs of the calling thread, k from 0 on.
template <class T, int Threads, class Run>
__device__ void for_packs(int packs, const Run& run) {
  for (int k = 0; k < kMostPacks; ++k) {
    const int at = (threadIdx.x % Threads) + k * Threads;
    if (at < packs) run(k, at * kPack<T>);
  }
}

template <class T, int Threads>
__global__ void normalize_persistent_rows(std::int64_t count, int packs, const T* all_x, const float* scale,
                                          const float* shift, T* all_y, float* means, float* inverses) {
  constexpr int V = kPack<T>;
  const std::int64_t row = row_of_thread<Threads>();
  if (row >= count) return;  // the row's whole warp
  const std::int64_t begin = row * packs * V;
  const float length = packs * V;
  AlignedVector<T, V> x[kMostPacks];
  float mean = 0, variance = 0;
  for_packs<T, Threads>(packs, [&](int k, int at) {
    x[k] = load<V>(all_x + begin + at);
    for (int v = 0; v < V; ++v) mean += to_float(x[k].v[v]);
  });
  mean = row_sum<Threads>(mean) / length;
  for_packs<T, Threads>(packs, [&](int k, int) {
    for (int v = 0; v < V; ++v) {
      const float difference = to_float(x[k].v[v]) - mean;
      variance += difference * difference;
    }
  });
  const float inverse = rsqrtf(row_sum<Threads>(variance) / length + kEpsilon);
  for_packs<T, Threads>(packs, [&](int k, int at) {
    const auto a = load<V>(scale + at), b = load<V>(shift + at);
    for (int v = 0; v < V; ++v)
      x[k].v[v] = from_float<T>(a.v[v] * (to_float(x[k].v[v]) - mean) * inverse + b.v[v]);
    store(x[k], all_y + begin + at);
  });
  if (threadIdx.x % Threads != 0) return;
  means[row] = mean;
  inverses[row] = inverse;
}

template <class T, int Threads>
__global__ void normalize_persistent_rows_back(std::int64_t count, int packs, const T* all_x, const T* all_dy,
                                               const float* scale, const float* means, const float* inverses,
                                               T* all_dx) {
  constexpr int V = kPack<T>;
  const std::int64_t row = row_of_thread<Threads>();
  if (row >= count) return;
  const std::int64_t begin = row * packs * V;
  const float mean = means[row], inverse = inverses[row], length = packs * V;
  AlignedVector<T, V> x[kMostPacks], dy[kMostPacks];
  float sum = 0, weighted = 0;
  for_packs<T, Threads>(packs, [&](int k, int at) {
    x[k] = load<V>(all_x + begin + at);
    dy[k] = load<V>(all_dy + begin + at);
    const auto a = load<V>(scale + at);
    for (int v = 0; v < V; ++v) {
      const float d = to_float(dy[k].v[v]) * a.v[v];
      sum += d;
      weighted += d * (to_float(x[k].v[v]) - mean) * inverse;
    }
  });
  sum = row_sum<Threads>(sum) / length;
  weighted = row_sum<Threads>(weighted) / length;
  for_packs<T, Threads>(packs, [&](int k, int at) {
    const auto a = load<V>(scale + at);
    for (int v = 0; v < V; ++v) {
      const float normal = (to_float(x[k].v[v]) - mean) * inverse;
      x[k].v[v] = from_float<T>((to_float(dy[k].v[v]) * a.v[v] - sum - normal * weighted) * inverse);
    }
    store(x[k], all_dx + begin + at);
  });
}

template <class T, int Threads>
__global__ void softmax_of_persistent_rows(std::int64_t count, int packs, bool causal, const T* all_x,
                                           T* all_p) {
  constexpr int V = kPack<T>;
  const std::int64_t row = row_of_thread<Threads>();
  if (row >= count) return;
  const std::int64_t length = packs * V, begin = row * length;
  const int seen = causal ? row % length + 1 : length;
  AlignedVector<T, V> x[kMostPacks];
  float most = -INFINITY, total = 0;
  for_packs<T, Threads>(packs, [&](int k, int at) {
    if (at >= seen) return;
    x[k] = load<V>(all_x + begin + at);
    for (int v = 0; v < V && at + v < seen; ++v) most = fmaxf(most, to_float(x[k].v[v]));
  });
  most = row_max<Threads>(most);
  for_packs<T, Threads>(packs, [&](int k, int at) {
    for (int v = 0; v < V && at + v < seen; ++v) total += expf(to_float(x[k].v[v]) - most);
  });
  total = row_sum<Threads>(total);
  for_packs<T, Threads>(packs, [&](int k, int at) {
    for (int v = 0; v < V; ++v)
      x[k].v[v] = from_float<T>(at + v < seen ? expf(to_float(x[k].v[v]) - most) / total : 0.f);
    store(x[k], all_p + begin + at);
  });
}

template <class T, int Threads>
__global__ void softmax_of_persistent_rows_back(std::int64_t count, int packs, float scale, const T* all_p,
                                                T* all_g) {
  constexpr int V = kPack<T>;
  const std::int64_t row = row_of_thread<Threads>();
  if (row >= count) return;
  const std::int64_t begin = row * packs * V;
  AlignedVector<T, V> p[kMostPacks], g[kMostPacks];
  float mean = 0;
  for_packs<T, Threads>(packs, [&](int k, int at) {
    p[k] = load<V>(all_p + begin + at);
    g[k] = load<V>(all_g + begin + at);
    for (int v = 0; v < V; ++v) mean += to_float(p[k].v[v]) * to_float(g[k].v[v]);
  });
  mean = row_sum<Threads>(mean);
  for_packs<T, Threads>(packs, [&](int k, int at) {
    for (int v = 0; v < V; ++v)
      g[k].v[v] = from_float<T>(scale * to_float(p[k].v[v]) * (to_float(g[k].v[v]) - mean));
    store(g[k], all_g + begin + at);
  });
}

}  // namespace stepcast::cudnn
