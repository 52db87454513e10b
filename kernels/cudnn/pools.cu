#include "kernels/cudnn/device_code.cuh"
#include "kernels/cudnn/moves.hpp"

namespace stepcast::cudnn {
namespace {

/// As PoolShape, for the device.
struct Pool {
  std::int64_t in[5], out[5], in_stride[5], out_stride[5], kernel[3], stride[3], pad[3];
  bool largest;

  __device__ std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  __device__ std::int64_t out_index(const std::int64_t* at) const {
    std::int64_t index = 0;
    for (int d = 0; d < 5; ++d) index += at[d] * out_stride[d];
    return index;
  }
  /// Where a tap of the window of an output falls in the input, or -1 in the padding.
  __device__ std::int64_t source(const std::int64_t* at, std::int64_t tap) const {
    std::int64_t index = at[0] * in_stride[0] + at[1] * in_stride[1];
    for (int d = 2; d >= 0; --d) {
      const std::int64_t place = at[d + 2] * stride[d] + take(tap, kernel[d]) - pad[d];
      if (place < 0 || place >= in[d + 2]) return -1;
      index += place * in_stride[d + 2];
    }
    return index;
  }
};

__device__ void position(std::int64_t i, const std::int64_t (&size)[5], std::int64_t (&at)[5]) {
  for (int d = 4; d >= 0; --d) at[d] = take(i, size[d]);
}

template <class T>
__global__ void pool_windows(Pool pool, std::int64_t n, const T* x, T* y, std::uint16_t* taps) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    std::int64_t at[5];
    position(i, pool.out, at);
    float best = -INFINITY, total = 0;
    std::int64_t chosen = 0, count = 0;
    for (std::int64_t tap = 0; tap < pool.taps(); ++tap) {
      const std::int64_t from = pool.source(at, tap);
      if (from < 0) continue;
      const float value = to_float(x[from]);
      if (value > best) {
        best = value;
        chosen = tap;
      }
      total += value;
      ++count;
    }
    const std::int64_t to = pool.out_index(at);
    y[to] = from_float<T>(pool.largest ? best : total / static_cast<float>(count));
    if (taps != nullptr) taps[to] = static_cast<std::uint16_t>(chosen);
  }
}

/// Elements of a window that are no padding.
__device__ std::int64_t window_size(const Pool& pool, const std::int64_t* at) {
  std::int64_t count = 1;
  for (int d = 0; d < 3; ++d) {
    const std::int64_t begin = at[d + 2] * pool.stride[d] - pool.pad[d], end = begin + pool.kernel[d];
    count *= (end < pool.in[d + 2] ? end : pool.in[d + 2]) - (begin > 0 ? begin : 0);
  }
  return count;
}

/// Gathers for every input element from the windows over it, so that nothing is added twice.
template <class T>
__global__ void pool_windows_back(Pool pool, std::int64_t n, const T* dy, T* dx, const std::uint16_t* taps) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    std::int64_t at[5], out[5], low[3], high[3];
    position(i, pool.in, at);
    for (int d = 0; d < 3; ++d) {
      const std::int64_t place = at[d + 2] + pool.pad[d];
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
          const std::int64_t from = pool.out_index(out);
          if (!pool.largest) {
            sum += to_float(dy[from]) / static_cast<float>(window_size(pool, out));
            continue;
          }
          std::int64_t tap = 0;
          for (int d = 0; d < 3; ++d) {
            tap = tap * pool.kernel[d] + at[d + 2] + pool.pad[d] - out[d + 2] * pool.stride[d];
          }
          if (taps[from] == tap) sum += to_float(dy[from]);
        }
      }
    }
    std::int64_t to = 0;
    for (int d = 0; d < 5; ++d) to += at[d] * pool.in_stride[d];
    dx[to] = from_float<T>(sum);
  }
}

Pool on_device(const PoolShape& s) {
  Pool pool{};
  for (int d = 0; d < 5; ++d) {
    const auto at = static_cast<std::size_t>(d);
    pool.in[d] = s.in[at];
    pool.out[d] = s.out[at];
    pool.in_stride[d] = s.in_stride[at];
    pool.out_stride[d] = s.out_stride[at];
    if (d >= 3) continue;
    pool.kernel[d] = s.kernel[at];
    pool.stride[d] = s.stride[at];
    pool.pad[d] = s.pad[at];
  }
  pool.largest = s.largest;
  return pool;
}

template <class Sizes>
std::int64_t product(const Sizes& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return n;
}

}  // namespace

void pool_forward(const PoolShape& shape, const void* x, void* y, std::uint16_t* taps, Element element,
                  cudaStream_t stream) {
  const std::int64_t n = product(shape.out);
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    pool_windows<<<blocks_for(n), kThreads, 0, stream>>>(on_device(shape), n, static_cast<const T*>(x),
                                                         static_cast<T*>(y), taps);
  });
  check_launch("pool_windows");
}

void pool_backward(const PoolShape& shape, const void* dy, void* dx, const std::uint16_t* taps,
                   Element element, cudaStream_t stream) {
  const std::int64_t n = product(shape.in);
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    pool_windows_back<<<blocks_for(n), kThreads, 0, stream>>>(on_device(shape), n, static_cast<const T*>(dy),
                                                              static_cast<T*>(dx), taps);
  });
  check_launch("pool_windows_back");
}

}  // namespace stepcast::cudnn
