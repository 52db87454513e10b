#include <algorithm>

#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/moves.hpp"

namespace stepcast::cudnn {
namespace {

/// PoolShape with plain arrays for the device.
template <class Index>
struct Pool {
  Index in[5], out[5], in_stride[5], out_stride[5], kernel[3], stride[3], pad[3];
  bool largest, channels_last;  ///< channels_last: the layout of the written tensor
};

/// Position of element i in the order of memory, so that neighbouring threads write neighbouring elements.
template <class Index>
__device__ void position(Index i, const Index (&size)[5], bool channels_last, Index (&at)[5]) {
  if (channels_last) at[1] = take(i, size[1]);
  for (int d = 4; d >= 0; --d) {
    if (d != 1 || !channels_last) at[d] = take(i, size[d]);
  }
}

template <class Index>
__device__ Index place_of(const Index (&at)[5], const Index (&stride)[5]) {
  Index place = 0;
  for (int d = 0; d < 5; ++d) place += at[d] * stride[d];
  return place;
}

/// Indices [low, high) within the window of an output that are not padding, along one dimension.
template <class Index>
struct Taps {
  Index first, low, high;  ///< first: input position of index 0
  __device__ Taps(const Pool<Index>& pool, const Index (&out)[5], int d) {
    first = out[d + 2] * pool.stride[d] - pool.pad[d];
    low = first < 0 ? -first : 0;
    high = first + pool.kernel[d] > pool.in[d + 2] ? pool.in[d + 2] - first : pool.kernel[d];
  }
  __device__ Index size() const { return high - low; }
};

template <class T, class Index>
__global__ void pool_windows(Pool<Index> pool, Index n, const T* x, T* y, std::uint16_t* taps) {
  for (Index i = static_cast<Index>(first_index()); i < n; i += static_cast<Index>(index_step())) {
    Index at[5];
    position(i, pool.out, pool.channels_last, at);
    const Taps<Index> depth(pool, at, 0), height(pool, at, 1), width(pool, at, 2);
    const Index corner = at[0] * pool.in_stride[0] + at[1] * pool.in_stride[1] +
                         depth.first * pool.in_stride[2] + height.first * pool.in_stride[3] +
                         width.first * pool.in_stride[4];
    float best = -INFINITY, total = 0;
    Index chosen = 0;
    for (Index a = depth.low; a < depth.high; ++a) {
      for (Index b = height.low; b < height.high; ++b) {
        const Index row = corner + a * pool.in_stride[2] + b * pool.in_stride[3];
        for (Index c = width.low; c < width.high; ++c) {
          const float value = to_float(x[row + c * pool.in_stride[4]]);
          total += value;
          if (!(value > best)) continue;
          best = value;
          chosen = (a * pool.kernel[1] + b) * pool.kernel[2] + c;
        }
      }
    }
    const Index to = place_of(at, pool.out_stride);
    const auto count = static_cast<float>(depth.size() * height.size() * width.size());
    y[to] = from_float<T>(pool.largest ? best : total / count);
    if (taps != nullptr) taps[to] = static_cast<std::uint16_t>(chosen);
  }
}

/// Each thread gathers the gradient of one input element from the windows that contain it, which needs no
/// atomics.
template <class T, class Index>
__global__ void pool_windows_back(Pool<Index> pool, Index n, const T* dy, T* dx, const std::uint16_t* taps) {
  for (Index i = static_cast<Index>(first_index()); i < n; i += static_cast<Index>(index_step())) {
    Index at[5], out[5], low[3], high[3];
    position(i, pool.in, pool.channels_last, at);
    for (int d = 0; d < 3; ++d) {
      const Index place = at[d + 2] + pool.pad[d];
      low[d] = place < pool.kernel[d] ? 0 : (place - pool.kernel[d]) / pool.stride[d] + 1;
      high[d] = place / pool.stride[d];
      if (high[d] >= pool.out[d + 2]) high[d] = pool.out[d + 2] - 1;
    }
    out[0] = at[0];
    out[1] = at[1];
    float sum = 0;
    for (out[2] = low[0]; out[2] <= high[0]; ++out[2]) {
      for (out[3] = low[1]; out[3] <= high[1]; ++out[3]) {
        for (out[4] = low[2]; out[4] <= high[2]; ++out[4]) {
          const Index from = place_of(out, pool.out_stride);
          if (!pool.largest) {
            const Taps<Index> depth(pool, out, 0), height(pool, out, 1), width(pool, out, 2);
            sum += to_float(dy[from]) / static_cast<float>(depth.size() * height.size() * width.size());
            continue;
          }
          Index tap = 0;
          for (int d = 0; d < 3; ++d) {
            tap = tap * pool.kernel[d] + at[d + 2] + pool.pad[d] - out[d + 2] * pool.stride[d];
          }
          if (static_cast<Index>(taps[from]) == tap) sum += to_float(dy[from]);
        }
      }
    }
    dx[place_of(at, pool.in_stride)] = from_float<T>(sum);
  }
}

template <class Index>
Pool<Index> on_device(const PoolShape& s, const std::array<std::int64_t, 5>& written) {
  Pool<Index> pool{};
  const auto set = [](const auto& from, auto& to) {
    for (std::size_t d = 0; d < from.size(); ++d) to[d] = static_cast<Index>(from[d]);
  };
  set(s.in, pool.in);
  set(s.out, pool.out);
  set(s.in_stride, pool.in_stride);
  set(s.out_stride, pool.out_stride);
  set(s.kernel, pool.kernel);
  set(s.stride, pool.stride);
  set(s.pad, pool.pad);
  pool.largest = s.largest;
  pool.channels_last = written[1] == 1;
  return pool;
}

template <class Sizes>
std::int64_t product(const Sizes& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return n;
}

/// Calls `run` with the type of the elements and the type of indices into both images.
template <class Run>
void with_types(const PoolShape& shape, Element element, const Run& run) {
  with_type(element, [&](auto type) {
    with_index(std::max(product(shape.in), product(shape.out)), [&](auto index) { run(type, index); });
  });
}

}  // namespace

void pool_forward(const PoolShape& shape, const void* x, void* y, std::uint16_t* taps, Element element,
                  cudaStream_t stream) {
  const std::int64_t n = product(shape.out);
  with_types(shape, element, [&](auto type, auto index) {
    using T = typename decltype(type)::type;
    using Index = decltype(index);
    pool_windows<<<blocks_for(n), kThreads, 0, stream>>>(on_device<Index>(shape, shape.out_stride),
                                                         static_cast<Index>(n), static_cast<const T*>(x),
                                                         static_cast<T*>(y), taps);
  });
  check_launch("pool_windows");
}

void pool_backward(const PoolShape& shape, const void* dy, void* dx, const std::uint16_t* taps,
                   Element element, cudaStream_t stream) {
  const std::int64_t n = product(shape.in);
  with_types(shape, element, [&](auto type, auto index) {
    using T = typename decltype(type)::type;
    using Index = decltype(index);
    pool_windows_back<<<blocks_for(n), kThreads, 0, stream>>>(
        on_device<Index>(shape, shape.in_stride), static_cast<Index>(n), static_cast<const T*>(dy),
        static_cast<T*>(dx), taps);
  });
  check_launch("pool_windows_back");
}

}  // namespace stepcast::cudnn
