#include "kernels/cudnn/cuda/sums.cuh"

namespace stepcast::cudnn {

namespace {

template <class T>
struct Value {
  using Type = T;
  static constexpr int kInputs = 1;
  using Channel = NoConstants;
  Inputs<T, 1> in;
  __device__ NoConstants channel(std::int64_t) const { return {}; }
  __device__ float2 terms(const float* v, NoConstants) const { return {v[0], 0.f}; }
};

/// The terms dy times the normalized x, and dy, with the statistics of the line. Inputs are x and dy.
template <class T>
struct LineSlopes {
  using Type = T;
  static constexpr int kInputs = 2;
  using Channel = NoConstants;
  using Line = float2;
  Inputs<T, 2> in;
  const float *mean, *inverse;
  __device__ NoConstants channel(std::int64_t) const { return {}; }
  __device__ float2 line(std::int64_t o) const { return {mean[o], inverse[o]}; }
  __device__ float2 terms(const float* v, NoConstants, float2 line) const {
    return {v[1] * (v[0] - line.x) * line.y, v[1]};
  }
};

}  // namespace

void channel_sums(const Channels& shape, const void* x, float* sums, const Scratch& scratch,
                  cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    sum_into(Value<T>{{{as<T>(x)}}}, shape, sums, nullptr, scratch, stream);
  });
}

void layer_norm_parameters(const Channels& shape, const void* x, const void* dy, const float* mean,
                           const float* inverse, float* scale_gradient, float* shift_gradient,
                           const Scratch& scratch, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const LineSlopes<T> slopes{{{as<T>(x), as<T>(dy)}}, mean, inverse};
    sum_into(slopes, shape, scale_gradient, shift_gradient, scratch, stream);
  });
}

namespace {

constexpr float kMomentum = 0.9f;

/// Sums of differences from the channel's first element, so that a large mean does not cancel the variance's
/// digits.
template <class T>
struct Moments {
  using Type = T;
  static constexpr int kInputs = 1;
  using Channel = float;
  Inputs<T, 1> in;
  std::int64_t inner;
  __device__ float channel(std::int64_t c) const { return to_float(in.at[0][c * inner]); }
  __device__ float2 terms(const float* v, float first) const {
    const float difference = v[0] - first;
    return {difference, difference * difference};
  }
};

/// Writes mean, inverse deviation and running statistics of channel c over n values.
__device__ void keep_statistics(double mean, double variance, double n, std::int64_t c,
                                const BatchNormArrays& a) {
  a.mean[c] = mean;
  a.inverse[c] = rsqrt(variance + kEpsilon);
  const double unbiased = n > 1 ? variance * n / (n - 1) : variance;
  if (a.running_mean != nullptr) {
    a.running_mean[c] = kMomentum * a.running_mean[c] + (1 - kMomentum) * static_cast<float>(mean);
  }
  if (a.running_variance != nullptr) {
    a.running_variance[c] =
        kMomentum * a.running_variance[c] + (1 - kMomentum) * static_cast<float>(unbiased);
  }
}

template <class T>
__global__ void write_statistics(const float2* parts, int count, Channels shape, const T* x,
                                 BatchNormArrays a) {
  const double n = shape.outer * shape.inner;
  const double2 total = total_of(parts, count, shape.channels);
  const std::int64_t c = channel_of_total();
  if (threadIdx.x >= kTogether || c >= shape.channels) return;
  const double shifted = total.x / n, variance = fmax(total.y / n - shifted * shifted, 0.);
  const double mean = shifted + to_float(x[c * shape.inner]);
  keep_statistics(mean, variance, n, c, a);
}

/// Writes a group's statistics from its sums of x and x^2.
__global__ void write_group_statistics(const float* sums, double n, std::int64_t channels,
                                       BatchNormArrays a) {
  for (std::int64_t c = first_index(); c < channels; c += index_step()) {
    const double mean = sums[c] / n, variance = fmax(sums[channels + c] / n - mean * mean, 0.);
    keep_statistics(mean, variance, n, c, a);
  }
}

template <class T>
struct Squares {
  using Type = T;
  static constexpr int kInputs = 1;
  using Channel = NoConstants;
  Inputs<T, 1> in;
  __device__ NoConstants channel(std::int64_t) const { return {}; }
  __device__ float2 terms(const float* v, NoConstants) const { return {v[0], v[0] * v[0]}; }
};

/// The linear map of one channel in the forward pass; loading it takes longer than applying it.
struct Factors {
  float mean, factor, shift;
};
struct Normalize {
  BatchNormArrays a;
  using Channel = Factors;
  __device__ Factors of(std::int64_t c) const { return {a.mean[c], a.scale[c] * a.inverse[c], a.shift[c]}; }
  /// @param v  {x}
  __device__ float operator()(const float* v, const Factors& own) const {
    return (v[0] - own.mean) * own.factor + own.shift;
  }
};

/// 0 for negative numbers; NaN stays NaN.
__device__ float rectified(float value) {
  return value < 0 ? 0.f : value;
}

struct NormalizeRelu {
  Normalize norm;
  using Channel = Factors;
  __device__ Factors of(std::int64_t c) const { return norm.of(c); }
  /// @param v  {x}
  __device__ float operator()(const float* v, const Factors& own) const { return rectified(norm(v, own)); }
};

struct NormalizeAddRelu {
  Normalize norm;
  using Channel = Factors;
  __device__ Factors of(std::int64_t c) const { return norm.of(c); }
  /// @param v  {x, added}
  __device__ float operator()(const float* v, const Factors& own) const {
    return rectified(norm(v, own) + v[1]);
  }
};

struct BackFactors {
  float mean, factor, less, slope;
};
struct NormalizeBack {
  BatchNormArrays a;
  const float *weighted, *sums;
  float size;
  using Channel = BackFactors;
  __device__ BackFactors of(std::int64_t c) const {
    return {a.mean[c], a.scale[c] * a.inverse[c], sums[c] / size, a.inverse[c] * weighted[c] / size};
  }
  /// @param v  {x, dy}
  __device__ float operator()(const float* v, const BackFactors& own) const {
    return own.factor * (v[1] - own.less - (v[0] - own.mean) * own.slope);
  }
};

struct ReluBackFactors {
  BackFactors back;
  float shift;
};
/// The gradient through a ReLU, whose mask is computed again, and through the norm before it.
struct NormalizeReluBack {
  Normalize norm;
  NormalizeBack back;
  using Channel = ReluBackFactors;
  __device__ ReluBackFactors of(std::int64_t c) const { return {back.of(c), norm.a.shift[c]}; }
  /// @param v  {x, dy}
  __device__ float operator()(const float* v, const ReluBackFactors& own) const {
    const Factors forward{own.back.mean, own.back.factor, own.shift};
    const float passed[2] = {v[0], norm(v, forward) > 0 ? v[1] : 0.f};
    return back(passed, own.back);
  }
};

/// The terms of Slopes for dy where the ReLU after the norm lets it through. Inputs are x and dy.
template <class T>
struct ReluSlopes {
  using Type = T;
  static constexpr int kInputs = 2;
  using Channel = Factors;
  Inputs<T, 2> in;
  Normalize norm;
  __device__ Channel channel(std::int64_t c) const { return norm.of(c); }
  __device__ float2 terms(const float* v, const Channel& own) const {
    const float dy = norm(v, own) > 0 ? v[1] : 0.f;
    return {dy * (v[0] - own.mean), dy};
  }
  __device__ float2 total(float2 sum, std::int64_t c) const { return {sum.x * norm.a.inverse[c], sum.y}; }
};

/// The same with the mask of y, because an added term is not stored twice; keeps the masked dy, which is the
/// gradient of that term. Inputs are x, dy and y.
template <class T>
struct MaskedSlopes {
  using Type = T;
  static constexpr int kInputs = 3;
  using Channel = float;
  Inputs<T, 3> in;
  const float *mean, *inverse;
  T* kept;
  __device__ float channel(std::int64_t c) const { return mean[c]; }
  __device__ float kept_value(const float* v) const { return v[2] > 0 ? v[1] : 0.f; }
  __device__ float2 terms(const float* v, float mean_of_channel) const {
    const float dy = kept_value(v);
    return {dy * (v[0] - mean_of_channel), dy};
  }
  __device__ float2 total(float2 sum, std::int64_t c) const { return {sum.x * inverse[c], sum.y}; }
};

/// Computes the statistics of the batch.
template <class T>
void compute_statistics(const Channels& shape, const BatchNormArrays& arrays, const T* in,
                        const Scratch& scratch, cudaStream_t stream) {
  const int count = sum_parts(Moments<T>{{{in}}, shape.inner}, shape, scratch, stream);
  write_statistics<<<blocks_of_totals(shape.channels), kThreads, 0, stream>>>(
      static_cast<const float2*>(scratch.data), count, shape, in, arrays);
  check_launch("write_statistics");
}

}  // namespace

void batch_norm_forward(const Channels& shape, const BatchNormArrays& arrays, const void* x, void* y,
                        const Scratch& scratch, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto* in = as<T>(x);
    compute_statistics(shape, arrays, in, scratch, stream);
    map_by_channel<T, 1>(Normalize{arrays}, shape, {in}, as<T>(y), stream);
  });
}

void batch_norm_relu_forward(const Channels& shape, const BatchNormArrays& norm, const NormReluArrays& arrays,
                             const Scratch& scratch, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto *x = as<T>(arrays.x), *added = as<T>(arrays.added);
    auto* y = as<T>(arrays.y);
    compute_statistics(shape, norm, x, scratch, stream);
    if (added == nullptr) return map_by_channel<T, 1>(NormalizeRelu{{norm}}, shape, {x}, y, stream);
    map_by_channel<T, 2>(NormalizeAddRelu{{norm}}, shape, {x, added}, y, stream);
  });
}

void batch_norm_relu_backward(const Channels& shape, const BatchNormArrays& norm,
                              const NormReluArrays& arrays, float* scale_gradient, float* shift_gradient,
                              const Scratch& scratch, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto *x = as<T>(arrays.x), *dy = as<T>(arrays.dy);
    auto *dx = as<T>(arrays.dx), *masked = as<T>(arrays.masked);
    const NormalizeBack back{norm, scale_gradient, shift_gradient,
                             static_cast<float>(shape.outer * shape.inner)};
    if (masked == nullptr) {
      sum_into(ReluSlopes<T>{{{x, dy}}, {norm}}, shape, scale_gradient, shift_gradient, scratch, stream);
      return map_by_channel<T, 2>(NormalizeReluBack{{norm}, back}, shape, {x, dy}, dx, stream);
    }
    const MaskedSlopes<T> slopes{{{x, dy, as<T>(arrays.y)}}, norm.mean, norm.inverse, masked};
    sum_into(slopes, shape, scale_gradient, shift_gradient, scratch, stream);
    map_by_channel<T, 2>(back, shape, {x, masked}, dx, stream);
  });
}

void batch_norm_backward(const Channels& shape, const BatchNormArrays& arrays, const void* x, const void* dy,
                         void* dx, float* scale_gradient, float* shift_gradient, const Scratch& scratch,
                         cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto *in = as<T>(x), *gradient = as<T>(dy);
    const Slopes<T> slopes{{{in, gradient}}, arrays.mean, arrays.inverse};
    sum_into(slopes, shape, scale_gradient, shift_gradient, scratch, stream);
    const float size = shape.outer * shape.inner;
    map_by_channel<T, 2>(NormalizeBack{arrays, scale_gradient, shift_gradient, size}, shape, {in, gradient},
                         as<T>(dx), stream);
  });
}

void synchronized_batch_norm_sums(const Channels& shape, const void* x, float* sums, const Scratch& scratch,
                                  cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    sum_into(Squares<T>{{{as<T>(x)}}}, shape, sums, sums + shape.channels, scratch, stream);
  });
}

void synchronized_batch_norm_forward(const Channels& shape, const BatchNormArrays& arrays, const float* sums,
                                     double count, const void* x, void* y, cudaStream_t stream) {
  write_group_statistics<<<blocks_for(shape.channels), kThreads, 0, stream>>>(sums, count, shape.channels,
                                                                              arrays);
  check_launch("write_group_statistics");
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    map_by_channel<T, 1>(Normalize{arrays}, shape, {as<T>(x)}, as<T>(y), stream);
  });
}

void synchronized_batch_norm_sums_back(const Channels& shape, const BatchNormArrays& arrays, const void* x,
                                       const void* dy, float* sums, const Scratch& scratch,
                                       cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const Slopes<T> slopes{{{as<T>(x), as<T>(dy)}}, arrays.mean, arrays.inverse};
    sum_into(slopes, shape, sums + shape.channels, sums, scratch, stream);
  });
}

void synchronized_batch_norm_backward(const Channels& shape, const BatchNormArrays& arrays, const float* sums,
                                      double count, const void* x, const void* dy, void* dx,
                                      cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const NormalizeBack back{arrays, sums + shape.channels, sums, static_cast<float>(count)};
    map_by_channel<T, 2>(back, shape, {as<T>(x), as<T>(dy)}, as<T>(dx), stream);
  });
}

}  // namespace stepcast::cudnn
