#include "kernels/cudnn/sums_code.cuh"

namespace stepcast::cudnn {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr float kKeep = 0.9f;

/// Less the channel's first element, so that a large mean does not swallow the variance.
template <class T>
struct Moments {
  const T* x;
  std::int64_t inner;
  __device__ float2 operator()(std::int64_t i, std::int64_t c, std::int64_t) const {
    const float v = to_float(x[i]) - to_float(x[c * inner]);
    return {v, v * v};
  }
};

template <class T>
__global__ void write_statistics(const float2* parts, int count, Channels shape, const T* x,
                                 BatchNormArrays a) {
  const double n = static_cast<double>(shape.outer * shape.inner);
  for (std::int64_t c = first_index(); c < shape.channels; c += index_step()) {
    const double2 total = total_of(parts, count, shape.channels, c);
    const double shifted = total.x / n, variance = fmax(total.y / n - shifted * shifted, 0.);
    const double mean = shifted + to_float(x[c * shape.inner]);
    a.mean[c] = static_cast<float>(mean);
    a.inverse[c] = static_cast<float>(rsqrt(variance + kEpsilon));
    const double unbiased = n > 1 ? variance * n / (n - 1) : variance;
    if (a.running_mean != nullptr) {
      a.running_mean[c] = kKeep * a.running_mean[c] + (1 - kKeep) * static_cast<float>(mean);
    }
    if (a.running_variance != nullptr) {
      a.running_variance[c] = kKeep * a.running_variance[c] + (1 - kKeep) * static_cast<float>(unbiased);
    }
  }
}

template <class T>
__global__ void normalize(Channels shape, BatchNormArrays a, const T* x, T* y) {
  const std::int64_t n = shape.outer * shape.channels * shape.inner;
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    const std::int64_t c = i / shape.inner % shape.channels;
    y[i] = from_float<T>(a.scale[c] * (to_float(x[i]) - a.mean[c]) * a.inverse[c] + a.shift[c]);
  }
}

template <class T>
__global__ void normalize_back(Channels shape, BatchNormArrays a, const T* x, const T* dy, T* dx,
                               const float* weighted, const float* sums) {
  const std::int64_t n = shape.outer * shape.channels * shape.inner;
  const float size = static_cast<float>(shape.outer * shape.inner);
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    const std::int64_t c = i / shape.inner % shape.channels;
    const float normal = (to_float(x[i]) - a.mean[c]) * a.inverse[c];
    const float d = to_float(dy[i]) - (sums[c] + normal * weighted[c]) / size;
    dx[i] = from_float<T>(a.scale[c] * a.inverse[c] * d);
  }
}

}  // namespace

void batch_norm_forward(const Channels& shape, const BatchNormArrays& arrays, const void* x, void* y,
                        const Scratch& scratch, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto* in = static_cast<const T*>(x);
    const int count = sum_parts(Moments<T>{in, shape.inner}, shape, scratch, stream);
    write_statistics<<<blocks_for(shape.channels), kThreads, 0, stream>>>(
        static_cast<const float2*>(scratch.data), count, shape, in, arrays);
    check_launch("write_statistics");
    normalize<<<blocks_for(shape.elements()), kThreads, 0, stream>>>(shape, arrays, in, static_cast<T*>(y));
    check_launch("normalize");
  });
}

void batch_norm_backward(const Channels& shape, const BatchNormArrays& arrays, const void* x, const void* dy,
                         void* dx, float* scale_gradient, float* shift_gradient, const Scratch& scratch,
                         cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto *in = static_cast<const T*>(x), *gradient = static_cast<const T*>(dy);
    const Slopes<T, false> slopes{in, gradient, arrays.mean, arrays.inverse};
    sum_into(slopes, shape, scale_gradient, shift_gradient, scratch, stream);
    normalize_back<<<blocks_for(shape.elements()), kThreads, 0, stream>>>(
        shape, arrays, in, gradient, static_cast<T*>(dx), scale_gradient, shift_gradient);
    check_launch("normalize_back");
  });
}

}  // namespace stepcast::cudnn
