#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/moves.hpp"

// Up-sampling and embeddings: elements that are read several times, and the sums of their gradients.
namespace stepcast::cudnn {
namespace {

struct UpSample {
  std::int64_t in[5], in_stride[5], out_stride[5], factor[5];
};

UpSample on_device(const UpSampleShape& s) {
  UpSample u{};
  for (int d = 0; d < 5; ++d) {
    const auto at = static_cast<std::size_t>(d);
    u.in[d] = s.in[at];
    u.in_stride[d] = s.in_stride[at];
    u.out_stride[d] = s.out_stride[at];
    u.factor[d] = d < 2 ? 1 : s.factor[at - 2];
  }
  return u;
}

/// One thread per input element, which is copied to a block of factor x factor x factor outputs, or sums
/// their gradients.
template <class T, bool Back>
__global__ void up_sample_kernel(UpSample u, std::int64_t n, const T* from, T* to) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    std::int64_t rest = i, in = 0, corner = 0;
    for (int d = 4; d >= 0; --d) {
      const std::int64_t at = rest % u.in[d];
      rest /= u.in[d];
      in += at * u.in_stride[d];
      corner += at * u.factor[d] * u.out_stride[d];
    }
    float sum = 0;
    for (std::int64_t a = 0; a < u.factor[2]; ++a) {
      for (std::int64_t b = 0; b < u.factor[3]; ++b) {
        for (std::int64_t c = 0; c < u.factor[4]; ++c) {
          const std::int64_t out = corner + a * u.out_stride[2] + b * u.out_stride[3] + c * u.out_stride[4];
          if (Back) {
            sum += to_float(from[out]);
          } else {
            to[out] = from[in];
          }
        }
      }
    }
    if (Back) to[in] = from_float<T>(sum);
  }
}

template <class T>
__global__ void take_rows(const float* tokens, const float* table, T* y, std::int64_t n,
                          std::int64_t columns) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    const auto row = static_cast<std::int64_t>(tokens[i / columns]);
    y[i] = from_float<T>(table[row * columns + i % columns]);
  }
}

template <class T>
__global__ void add_rows(const float* tokens, const T* dy, float* gradient, std::int64_t n,
                         std::int64_t columns) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    const auto row = static_cast<std::int64_t>(tokens[i / columns]);
    atomicAdd(gradient + row * columns + i % columns, to_float(dy[i]));
  }
}

std::int64_t inputs(const UpSampleShape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape.in) n *= size;
  return n;
}

}  // namespace

void up_sample_forward(const UpSampleShape& shape, const void* x, void* y, Element element,
                       cudaStream_t stream) {
  const std::int64_t n = inputs(shape);
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    up_sample_kernel<T, false><<<blocks_for(n), kThreads, 0, stream>>>(
        on_device(shape), n, static_cast<const T*>(x), static_cast<T*>(y));
  });
  check_launch("up_sample");
}

void up_sample_backward(const UpSampleShape& shape, const void* dy, void* dx, Element element,
                        cudaStream_t stream) {
  const std::int64_t n = inputs(shape);
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    up_sample_kernel<T, true><<<blocks_for(n), kThreads, 0, stream>>>(
        on_device(shape), n, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
  check_launch("up_sample");
}

void embedding_forward(const float* tokens, const float* table, void* y, Element element, std::int64_t count,
                       std::int64_t columns, cudaStream_t stream) {
  const std::int64_t n = count * columns;
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    take_rows<<<blocks_for(n), kThreads, 0, stream>>>(tokens, table, static_cast<T*>(y), n, columns);
  });
  check_launch("take_rows");
}

void embedding_backward(const float* tokens, const void* dy, float* table_gradient, Element element,
                        std::int64_t count, std::int64_t columns, cudaStream_t stream) {
  const std::int64_t n = count * columns;
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    add_rows<<<blocks_for(n), kThreads, 0, stream>>>(tokens, static_cast<const T*>(dy), table_gradient, n,
                                                     columns);
  });
  check_launch("add_rows");
}

}  // namespace stepcast::cudnn
