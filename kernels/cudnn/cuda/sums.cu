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

}  // namespace stepcast::cudnn
