#include <algorithm>
#include <type_traits>

#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/moves.hpp"

namespace stepcast::cudnn {
namespace {

/// PoolShape for the device.
template <class Index>
struct Pool {
  /// Of the tensor that is written; `packs`: vectors of V channels.
  Divisor<Index> packs, size[3];
  bool channels_last;
  Divisor<Index> stride[3];
  Index in[3], out[3], in_stride[5], out_stride[5], kernel[3], pad[3];
};

/// Position of a vector of channels, the first of which is c.
template <class Index>
struct Position {
  Index n, c, at[3];

  __device__ Index place(const Index (&stride)[5]) const {
    return n * stride[0] + c * stride[1] + at[0] * stride[2] + at[1] * stride[3] + at[2] * stride[4];
  }
};

/// Position number i in the order of memory, so that neighbouring threads write neighbouring elements.
template <int V, class Index>
__device__ Position<Index> position(const Pool<Index>& pool, Index i) {
  Position<Index> p;
  if (pool.channels_last) p.c = take(i, pool.packs);
  for (int d = 2; d >= 0; --d) p.at[d] = take(i, pool.size[d]);
  if (!pool.channels_last) p.c = take(i, pool.packs);
  p.c *= V;
  p.n = i;
  return p;
}

/// Indices [low, high) within the window of an output that are not padding, along one dimension.
template <class Index>
struct Taps {
  Index first, low, high;  ///< first: input position of index 0
  __device__ Taps(const Pool<Index>& pool, Index out, int d) {
    first = out * pool.stride[d].size - pool.pad[d];
    low = first < 0 ? -first : 0;
    high = first + pool.kernel[d] > pool.in[d] ? pool.in[d] - first : pool.kernel[d];
  }
  __device__ Index size() const { return high - low; }
};

/// Elements of an output's window that are not padding.
template <class Index>
__device__ float elements_in(const Pool<Index>& pool, Index a, Index b, Index c) {
  return static_cast<float>(Taps<Index>(pool, a, 0).size() * Taps<Index>(pool, b, 1).size() *
                            Taps<Index>(pool, c, 2).size());
}

/// Outputs [low, high] whose windows contain an input, along one dimension.
template <class Index>
struct Windows {
  Index low, high, padded;  ///< padded: position of the input behind the padding
  __device__ Windows(const Pool<Index>& pool, Index in, int d) {
    padded = in + pool.pad[d];
    low = padded < pool.kernel[d] ? 0 : pool.stride[d].quotient(padded - pool.kernel[d]) + 1;
    high = min(pool.stride[d].quotient(padded), pool.out[d] - 1);
  }
  /// Index of the input in the window of an output.
  __device__ Index tap(const Pool<Index>& pool, Index out, int d) const {
    return padded - out * pool.stride[d].size;
  }
};

/// Maximum, or sum, over a window's positions, for each channel of a vector.
template <int V, bool Largest>
struct Found {
  float value[V];
  AlignedVector<std::uint16_t, V> tap{};  ///< index of the maximum in the window

  __device__ Found() {
    for (float& one : value) one = Largest ? -INFINITY : 0.f;
  }
  template <class T, class Index>
  __device__ void add(const AlignedVector<T, V>& read, Index index) {
    for (int j = 0; j < V; ++j) {
      const float x = to_float(read.v[j]);
      if (!Largest) value[j] += x;
      if (!Largest || !(x > value[j])) continue;
      value[j] = x;
      tap.v[j] = static_cast<std::uint16_t>(index);
    }
  }
};

/// Reads x, writes y and, of a maximum, 2 bytes of taps for each element of y. A thread loads three
/// neighbours before it uses the first, so that their loads wait together; where a row has fewer, the last is
/// loaded again.
template <class T, int V, bool Largest, class Index>
__global__ void pool_windows(Pool<Index> pool, Index n, const T* x, T* y, std::uint16_t* taps) {
  constexpr int kTogether = 3;
  for (Index i = first_index(); i < n; i += static_cast<Index>(index_step())) {
    const Position<Index> out = position<V>(pool, i);
    const Taps<Index> depth(pool, out.at[0], 0), height(pool, out.at[1], 1), width(pool, out.at[2], 2);
    const Position<Index> first{out.n, out.c, {depth.first, height.first, width.first}};
    const Index corner = first.place(pool.in_stride);
    Found<V, Largest> found;
    for (Index a = depth.low; a < depth.high; ++a) {
      for (Index b = height.low; b < height.high; ++b) {
        const Index row = corner + a * pool.in_stride[2] + b * pool.in_stride[3];
        const Index tap = (a * pool.kernel[1] + b) * pool.kernel[2];
        for (Index c = width.low; c < width.high; c += kTogether) {
          AlignedVector<T, V> read[kTogether];
          for (int k = 0; k < kTogether; ++k)
            read[k] = load<V>(x + row + min(c + k, width.high - 1) * pool.in_stride[4]);
          for (int k = 0; k < kTogether; ++k) {
            if (c + k < width.high) found.add(read[k], tap + c + k);
          }
        }
      }
    }
    const float count = elements_in(pool, out.at[0], out.at[1], out.at[2]);
    AlignedVector<T, V> written;
    for (int j = 0; j < V; ++j)
      written.v[j] = from_float<T>(Largest ? found.value[j] : found.value[j] / count);
    const Index to = out.place(pool.out_stride);
    store(written, y + to);
    if (Largest) store(found.tap, taps + to);
  }
}

/// Reads dy and, of a maximum, the taps, and writes dx. Each thread gathers the gradients of the channels of
/// a vector from the windows that contain its position, which needs no atomics, and loads two neighbours
/// together.
template <class T, int V, bool Largest, class Index>
__global__ void pool_windows_back(Pool<Index> pool, Index n, const T* dy, T* dx, const std::uint16_t* taps) {
  constexpr int kTogether = 2;
  for (Index i = first_index(); i < n; i += static_cast<Index>(index_step())) {
    const Position<Index> in = position<V>(pool, i);
    const Windows<Index> depth(pool, in.at[0], 0), height(pool, in.at[1], 1), width(pool, in.at[2], 2);
    float sum[V] = {};
    for (Index a = depth.low; a <= depth.high; ++a) {
      for (Index b = height.low; b <= height.high; ++b) {
        const Index row = Position<Index>{in.n, in.c, {a, b, 0}}.place(pool.out_stride);
        const Index tap = (depth.tap(pool, a, 0) * pool.kernel[1] + height.tap(pool, b, 1)) * pool.kernel[2];
        for (Index c = width.low; c <= width.high; c += kTogether) {
          AlignedVector<T, V> slope[kTogether];
          AlignedVector<std::uint16_t, V> chosen[kTogether];
          for (int k = 0; k < kTogether; ++k) {
            const Index from = row + min(c + k, width.high) * pool.out_stride[4];
            slope[k] = load<V>(dy + from);
            if (Largest) chosen[k] = load<V>(taps + from);
          }
          for (int k = 0; k < kTogether; ++k) {
            if (c + k > width.high) break;
            const float share = Largest ? 1.f : 1.f / elements_in(pool, a, b, c + k);
            const Index own = tap + width.tap(pool, c + k, 2);
            for (int j = 0; j < V; ++j) {
              if (!Largest || chosen[k].v[j] == own) sum[j] += to_float(slope[k].v[j]) * share;
            }
          }
        }
      }
    }
    AlignedVector<T, V> written;
    for (int j = 0; j < V; ++j) written.v[j] = from_float<T>(sum[j]);
    store(written, dx + in.place(pool.in_stride));
  }
}

using Five = std::array<std::int64_t, 5>;

std::int64_t product(const Five& sizes) {
  return sizes[0] * sizes[1] * sizes[2] * sizes[3] * sizes[4];
}

template <class Index>
Pool<Index> on_device(const PoolShape& s, const Five& size, const Five& strides, int width) {
  Pool<Index> pool{};
  pool.channels_last = strides[1] == 1;
  pool.packs = Divisor<Index>(size[1] / width);
  for (std::size_t d = 0; d < 5; ++d) {
    pool.in_stride[d] = s.in_stride[d];
    pool.out_stride[d] = s.out_stride[d];
  }
  for (std::size_t d = 0; d < 3; ++d) {
    pool.size[d] = Divisor<Index>(size[d + 2]);
    pool.stride[d] = Divisor<Index>(s.stride[d]);
    pool.in[d] = s.in[d + 2];
    pool.out[d] = s.out[d + 2];
    pool.kernel[d] = s.kernel[d];
    pool.pad[d] = s.pad[d];
  }
  return pool;
}

/// True if the channels of both images lie side by side, and all packs are aligned.
bool takes_packs(const PoolShape& s, Element element, const void* from, const void* to, const void* taps) {
  const std::int64_t width = 16 / bytes_of(element);
  bool fits = s.in_stride[1] == 1 && s.out_stride[1] == 1 && s.in[1] % width == 0;
  for (const std::size_t d : {0, 2, 3, 4})
    fits = fits && s.in_stride[d] % width == 0 && s.out_stride[d] % width == 0;
  return fits && are_aligned(from, to, taps);
}

/// Calls `run` with the type of the elements, the number of channels of a vector and whether the pool takes
/// maxima as constants, the pool for the device, and the number of positions in the image that is written.
template <class Run>
void with_pool(const PoolShape& shape, const Five& size, const Five& strides, Element element, bool packs,
               const Run& run) {
  const auto with_width = [&](auto type, auto width) {
    with_index(std::max(product(shape.in), product(shape.out)), [&](auto index) {
      using Index = decltype(index);
      constexpr int V = decltype(width)::value;
      const auto pool = on_device<Index>(shape, size, strides, V);
      const auto n = static_cast<Index>(product(size) / V);
      shape.largest ? run(type, width, std::true_type(), pool, n)
                    : run(type, width, std::false_type(), pool, n);
    });
  };
  with_type(element, [&](auto type) {
    constexpr int V = kPack<typename decltype(type)::type>;
    packs ? with_width(type, std::integral_constant<int, V>())
          : with_width(type, std::integral_constant<int, 1>());
  });
}

}  // namespace

void pool_forward(const PoolShape& shape, const void* x, void* y, std::uint16_t* taps, Element element,
                  cudaStream_t stream) {
  if (product(shape.out) == 0) return;
  with_pool(shape, shape.out, shape.out_stride, element, takes_packs(shape, element, x, y, taps),
            [&]<class T, int V, bool Largest>(Type<T>, std::integral_constant<int, V>,
                                              std::bool_constant<Largest>, const auto& pool, auto n) {
              pool_windows<T, V, Largest><<<blocks_for(n), kThreads, 0, stream>>>(
                  pool, n, static_cast<const T*>(x), static_cast<T*>(y), taps);
            });
  check_launch("pool_windows");
}

void pool_backward(const PoolShape& shape, const void* dy, void* dx, const std::uint16_t* taps,
                   Element element, cudaStream_t stream) {
  if (product(shape.in) == 0) return;
  with_pool(shape, shape.in, shape.in_stride, element, takes_packs(shape, element, dy, dx, taps),
            [&]<class T, int V, bool Largest>(Type<T>, std::integral_constant<int, V>,
                                              std::bool_constant<Largest>, const auto& pool, auto n) {
              pool_windows_back<T, V, Largest><<<blocks_for(n), kThreads, 0, stream>>>(
                  pool, n, static_cast<const T*>(dy), static_cast<T*>(dx), taps);
            });
  check_launch("pool_windows_back");
}

}  // namespace stepcast::cudnn
