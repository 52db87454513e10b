#include "kernels/cudnn/cuda/sums.cuh"

namespace stepcast::cudnn {

namespace {

template <class T>
struct Value {
  using Type = T;
  static constexpr int kInputs = 1;
  Inputs<T, 1> in;
  __device__ float2 terms(const float* v, std::int64_t, std::int64_t) const { return {v[0], 0.f}; }
};

}  // namespace

void channel_sums(const Channels& shape, const void* x, float* sums, const Scratch& scratch,
                  cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    sum_into(Value<T>{{{static_cast<const T*>(x)}}}, shape, sums, nullptr, scratch, stream);
  });
}

void layer_norm_parameters(const Channels& shape, const void* x, const void* dy, const float* mean,
                           const float* inverse, float* scale_gradient, float* shift_gradient,
                           const Scratch& scratch, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const Slopes<T, true> slopes{{{static_cast<const T*>(x), static_cast<const T*>(dy)}}, mean, inverse};
    sum_into(slopes, shape, scale_gradient, shift_gradient, scratch, stream);
  });
}

namespace {

constexpr float kEpsilon = 1e-5f;
constexpr float kMomentum = 0.9f;

/// Sums of differences from the channel's first element, so that a large mean does not cancel the variance's
/// digits.
template <class T>
struct Moments {
  using Type = T;
  static constexpr int kInputs = 1;
  Inputs<T, 1> in;
  std::int64_t inner;
  __device__ float2 terms(const float* v, std::int64_t c, std::int64_t) const {
    const float difference = v[0] - to_float(in.at[0][c * inner]);
    return {difference, difference * difference};
  }
};

/// Writes mean, inverse deviation and running statistics of channel c over n values.
__device__ void keep_statistics(double mean, double variance, double n, std::int64_t c,
                                const BatchNormArrays& a) {
  a.mean[c] = static_cast<float>(mean);
  a.inverse[c] = static_cast<float>(rsqrt(variance + kEpsilon));
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
  const double n = static_cast<double>(shape.outer * shape.inner);
  for (std::int64_t c = first_channel(); c < shape.channels; c += channel_step()) {
    const double2 total = total_of(parts, count, shape.channels, c);
    if (threadIdx.x % 32 != 0) continue;
    const double shifted = total.x / n, variance = fmax(total.y / n - shifted * shifted, 0.);
    const double mean = shifted + to_float(x[c * shape.inner]);
    keep_statistics(mean, variance, n, c, a);
  }
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
  Inputs<T, 1> in;
  __device__ float2 terms(const float* v, std::int64_t, std::int64_t) const { return {v[0], v[0] * v[0]}; }
};

/// The linear map of one channel in the forward pass; loading it takes longer than applying it.
struct Line {
  float mean, factor, shift;
};
struct Normalize {
  BatchNormArrays a;
  using Channel = Line;
  __device__ Line of(std::int64_t c) const { return {a.mean[c], a.scale[c] * a.inverse[c], a.shift[c]}; }
  /// @param v  {x}
  __device__ float operator()(const float* v, const Line& line) const {
    return (v[0] - line.mean) * line.factor + line.shift;
  }
};

/// 0 for what is negative; what is not a number stays so.
__device__ float rectified(float value) {
  return value < 0 ? 0.f : value;
}

struct NormalizeRelu {
  Normalize norm;
  using Channel = Line;
  __device__ Line of(std::int64_t c) const { return norm.of(c); }
  /// @param v  {x}
  __device__ float operator()(const float* v, const Line& line) const { return rectified(norm(v, line)); }
};

struct NormalizeAddRelu {
  Normalize norm;
  using Channel = Line;
  __device__ Line of(std::int64_t c) const { return norm.of(c); }
  /// @param v  {x, added}
  __device__ float operator()(const float* v, const Line& line) const {
    return rectified(norm(v, line) + v[1]);
  }
};

struct LineBack {
  float mean, factor, less, slope;
};
struct NormalizeBack {
  BatchNormArrays a;
  const float *weighted, *sums;
  float size;
  using Channel = LineBack;
  __device__ LineBack of(std::int64_t c) const {
    return {a.mean[c], a.scale[c] * a.inverse[c], sums[c] / size, a.inverse[c] * weighted[c] / size};
  }
  /// @param v  {x, dy}
  __device__ float operator()(const float* v, const LineBack& line) const {
    return line.factor * (v[1] - line.less - (v[0] - line.mean) * line.slope);
  }
};

struct LineReluBack {
  Line forward;
  LineBack back;
};
/// The gradient through a ReLU, whose mask is computed again, and through the norm before it.
struct NormalizeReluBack {
  Normalize norm;
  NormalizeBack back;
  using Channel = LineReluBack;
  __device__ LineReluBack of(std::int64_t c) const { return {norm.of(c), back.of(c)}; }
  /// @param v  {x, dy}
  __device__ float operator()(const float* v, const LineReluBack& line) const {
    const float passed[2] = {v[0], norm(v, line.forward) > 0 ? v[1] : 0.f};
    return back(passed, line.back);
  }
};

/// The terms of Slopes for dy where the ReLU after the norm lets it through. Inputs are x and dy.
template <class T>
struct ReluSlopes {
  using Type = T;
  static constexpr int kInputs = 2;
  Inputs<T, 2> in;
  BatchNormArrays a;
  __device__ float2 terms(const float* v, std::int64_t c, std::int64_t) const {
    const Normalize norm{a};
    const float dy = norm(v, norm.of(c)) > 0 ? v[1] : 0.f;
    return {dy * (v[0] - a.mean[c]) * a.inverse[c], dy};
  }
};

/// The same with the mask of y, because an added term is not stored twice; keeps the masked dy, which is the
/// gradient of that term. Inputs are x, dy and y.
template <class T>
struct MaskedSlopes {
  using Type = T;
  static constexpr int kInputs = 3;
  Inputs<T, 3> in;
  const float *mean, *inverse;
  T* kept;
  __device__ float kept_value(const float* v) const { return v[2] > 0 ? v[1] : 0.f; }
  __device__ float2 terms(const float* v, std::int64_t c, std::int64_t) const {
    const float dy = kept_value(v);
    return {dy * (v[0] - mean[c]) * inverse[c], dy};
  }
};

/// out[i] = f({in[0][i], ...}, channel of i): the first `packs` packs as packs, the remaining elements one by
/// one. A pack lies in one channel, or has as many channels as elements if channels are innermost. Threads
/// keep the constants of channels from one pack to the next, whose channels are mostly the same, because
/// loading them again would take longer than the computation.
template <class T, int K, class F, class Index>
__global__ void map_channels(F f, Index n, Index inner, Index channels, Index packs, Inputs<T, K> in,
                             T* out) {
  constexpr int kPack = 16 / sizeof(T);
  const auto first = static_cast<Index>(first_index()), step = static_cast<Index>(index_step());
  typename F::Channel known[kPack] = {};
  Index known_from = -1;
  for (Index i = first; i < packs; i += step) {
    const Index c = i * kPack / inner % channels;
    if (c != known_from) {
      for (int j = 0; j < kPack; ++j) known[j] = f.of(inner == 1 ? c + j : c);
      known_from = c;
    }
    Pack<T> loaded[K], result;
    for (int k = 0; k < K; ++k) loaded[k] = reinterpret_cast<const Pack<T>*>(in.at[k])[i];
    for (int j = 0; j < kPack; ++j) {
      float values[K];
      for (int k = 0; k < K; ++k) values[k] = to_float(loaded[k].v[j]);
      result.v[j] = from_float<T>(f(values, known[j]));
    }
    reinterpret_cast<Pack<T>*>(out)[i] = result;
  }
  for (Index i = packs * kPack + first; i < n; i += step) {
    float values[K];
    for (int k = 0; k < K; ++k) values[k] = to_float(in.at[k][i]);
    out[i] = from_float<T>(f(values, f.of(i / inner % channels)));
  }
}

template <class T, int K, class F>
void map_by_channel(const F& f, const Channels& shape, const Inputs<T, K>& in, T* out, cudaStream_t stream) {
  constexpr std::int64_t kPack = 16 / sizeof(T);
  constexpr unsigned kFull =
      132 * 8;  // blocks that fill a GPU; more blocks would leave fewer packs per thread
  const std::int64_t run = shape.inner == 1 ? shape.channels : shape.inner, n = shape.elements();
  const std::int64_t packs = run % kPack == 0 && takes_packs(in, out) ? n / kPack : 0;
  const unsigned blocks = std::min(kFull, blocks_for(packs == 0 ? n : packs));
  with_index(n, [&](auto index) {
    using Index = decltype(index);
    map_channels<T, K, F><<<blocks, kThreads, 0, stream>>>(
        f, static_cast<Index>(n), static_cast<Index>(shape.inner), static_cast<Index>(shape.channels),
        static_cast<Index>(packs), in, out);
  });
  check_launch("map_channels");
}

/// Computes the statistics of the batch.
template <class T>
void compute_statistics(const Channels& shape, const BatchNormArrays& arrays, const T* in,
                        const Scratch& scratch, cudaStream_t stream) {
  const int count = sum_parts(Moments<T>{{{in}}, shape.inner}, shape, scratch, stream);
  write_statistics<<<blocks_for(32 * shape.channels), kThreads, 0, stream>>>(
      static_cast<const float2*>(scratch.data), count, shape, in, arrays);
  check_launch("write_statistics");
}

}  // namespace

void batch_norm_forward(const Channels& shape, const BatchNormArrays& arrays, const void* x, void* y,
                        const Scratch& scratch, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto* in = static_cast<const T*>(x);
    compute_statistics(shape, arrays, in, scratch, stream);
    map_by_channel<T, 1>(Normalize{arrays}, shape, {in}, static_cast<T*>(y), stream);
  });
}

void batch_norm_relu_forward(const Channels& shape, const BatchNormArrays& norm, const NormReluArrays& arrays,
                             const Scratch& scratch, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto *x = static_cast<const T*>(arrays.x), *added = static_cast<const T*>(arrays.added);
    auto* y = static_cast<T*>(arrays.y);
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
    const auto *x = static_cast<const T*>(arrays.x), *dy = static_cast<const T*>(arrays.dy);
    auto *dx = static_cast<T*>(arrays.dx), *masked = static_cast<T*>(arrays.masked);
    const NormalizeBack back{norm, scale_gradient, shift_gradient,
                             static_cast<float>(shape.outer * shape.inner)};
    if (masked == nullptr) {
      sum_into(ReluSlopes<T>{{{x, dy}}, norm}, shape, scale_gradient, shift_gradient, scratch, stream);
      return map_by_channel<T, 2>(NormalizeReluBack{{norm}, back}, shape, {x, dy}, dx, stream);
    }
    const MaskedSlopes<T> slopes{{{x, dy, static_cast<const T*>(arrays.y)}}, norm.mean, norm.inverse, masked};
    sum_into(slopes, shape, scale_gradient, shift_gradient, scratch, stream);
    map_by_channel<T, 2>(back, shape, {x, masked}, dx, stream);
  });
}

void batch_norm_backward(const Channels& shape, const BatchNormArrays& arrays, const void* x, const void* dy,
                         void* dx, float* scale_gradient, float* shift_gradient, const Scratch& scratch,
                         cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto *in = static_cast<const T*>(x), *gradient = static_cast<const T*>(dy);
    const Slopes<T, false> slopes{{{in, gradient}}, arrays.mean, arrays.inverse};
    sum_into(slopes, shape, scale_gradient, shift_gradient, scratch, stream);
    const auto size = static_cast<float>(shape.outer * shape.inner);
    map_by_channel<T, 2>(NormalizeBack{arrays, scale_gradient, shift_gradient, size}, shape, {in, gradient},
                         static_cast<T*>(dx), stream);
  });
}

void group_norm_sums(const Channels& shape, const void* x, float* sums, const Scratch& scratch,
                     cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    sum_into(Squares<T>{{{static_cast<const T*>(x)}}}, shape, sums, sums + shape.channels, scratch, stream);
  });
}

void group_norm_forward(const Channels& shape, const BatchNormArrays& arrays, const float* sums, double count,
                        const void* x, void* y, cudaStream_t stream) {
  write_group_statistics<<<blocks_for(shape.channels), kThreads, 0, stream>>>(sums, count, shape.channels,
                                                                              arrays);
  check_launch("write_group_statistics");
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    map_by_channel<T, 1>(Normalize{arrays}, shape, {static_cast<const T*>(x)}, static_cast<T*>(y), stream);
  });
}

void group_norm_sums_back(const Channels& shape, const BatchNormArrays& arrays, const void* x, const void* dy,
                          float* sums, const Scratch& scratch, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const Slopes<T, false> slopes{
        {{static_cast<const T*>(x), static_cast<const T*>(dy)}}, arrays.mean, arrays.inverse};
    sum_into(slopes, shape, sums + shape.channels, sums, scratch, stream);
  });
}

void group_norm_backward(const Channels& shape, const BatchNormArrays& arrays, const float* sums,
                         double count, const void* x, const void* dy, void* dx, cudaStream_t stream) {
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    const NormalizeBack back{arrays, sums + shape.channels, sums, static_cast<float>(count)};
    map_by_channel<T, 2>(back, shape, {static_cast<const T*>(x), static_cast<const T*>(dy)},
                         static_cast<T*>(dx), stream);
  });
}

}  // namespace stepcast::cudnn
