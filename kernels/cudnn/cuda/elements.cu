#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/network/dropout_mask.hpp"

namespace stepcast::cudnn {
namespace {

/// out[i] = f({in[0][i], ...}, i): the first `packs` packs as packs, the remaining elements one by one.
template <class T, int K, class F>
__global__ void map_elements(F f, std::int64_t n, std::int64_t packs, Inputs<T, K> in, T* out) {
  constexpr int V = kPack<T>;
  for (std::int64_t i = first_index(); i < packs; i += index_step()) {
    AlignedVector<T, V> loaded[K], result;
    for (int k = 0; k < K; ++k) loaded[k] = load<V>(in.at[k] + V * i);
    for (int j = 0; j < V; ++j) {
      float values[K];
      for (int k = 0; k < K; ++k) values[k] = to_float(loaded[k].v[j]);
      result.v[j] = from_float<T>(f(values, V * i + j));
    }
    store(result, out + V * i);
  }
  for (std::int64_t i = packs * V + first_index(); i < n; i += index_step()) {
    float values[K];
    for (int k = 0; k < K; ++k) values[k] = to_float(in.at[k][i]);
    out[i] = from_float<T>(f(values, i));
  }
}

template <int K, class F>
void map(const F& f, const void* const (&in)[K], void* out, Element element, std::int64_t n,
         cudaStream_t stream) {
  if (n == 0) return;
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    Inputs<T, K> inputs{};
    for (int k = 0; k < K; ++k) inputs.at[k] = as<T>(in[k]);
    auto* result = as<T>(out);
    const std::int64_t packs = are_aligned(inputs, result) ? n / kPack<T> : 0;
    const auto blocks = blocks_for(packs == 0 ? n : packs + 1);
    map_elements<T, K, F><<<blocks, kThreads, 0, stream>>>(f, n, packs, inputs, result);
  });
  check_launch("map_elements");
}

__device__ float sigmoid(float x) {
  return 1.f / (1.f + expf(-x));
}

struct Forward {
  Activation a;
  __device__ float operator()(const float* v, std::int64_t) const {
    const float x = v[0];
    switch (a.kind) {
      case LayerKind::sigmoid:
        return sigmoid(x);
      case LayerKind::tanh:
        return tanhf(x);
      case LayerKind::elu:
        return x > 0 ? x : a.alpha * expm1f(x);
      case LayerKind::gelu:
        return x * normcdff(x);
      default:
        return x > 0 ? x : a.alpha * x;
    }
  }
};

/// @param v  {x, dy}
struct Backward {
  Activation a;
  __device__ float operator()(const float* v, std::int64_t) const {
    const float x = v[0];
    switch (a.kind) {
      case LayerKind::sigmoid:
        return v[1] * sigmoid(x) * (1.f - sigmoid(x));
      case LayerKind::tanh:
        return v[1] * (1.f - tanhf(x) * tanhf(x));
      case LayerKind::elu:
        return v[1] * (x > 0 ? 1.f : a.alpha * expf(x));
      case LayerKind::gelu:
        return v[1] * (normcdff(x) +
                       x * 0.3989422804f * expf(-x * x / 2));  // density of the standard normal distribution
      default:
        return v[1] * (x > 0 ? 1.f : a.alpha);
    }
  }
};

struct Sum {
  __device__ float operator()(const float* v, std::int64_t) const { return v[0] + v[1]; }
};

struct Drop {
  DropoutMask mask;
  __device__ float operator()(const float* v, std::int64_t i) const {
    return dropout_bits(mask.key, i) < mask.threshold ? 0.f : v[0] * mask.scale;
  }
};

template <class T>
__global__ void element_loss_sum(bool squared, double weight, std::int64_t n, const T* x, const float* t,
                                 double* loss) {
  float sum = 0;
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    const float value = to_float(x[i]), difference = value - t[i];
    sum += squared ? difference * difference : fmaxf(value, 0.f) - value * t[i] + log1pf(expf(-fabsf(value)));
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(loss, weight * sum / n);
}

template <class T>
__global__ void element_loss_slope(bool squared, float scale, std::int64_t n, const T* x, const float* t,
                                   T* dx) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    const float value = to_float(x[i]);
    dx[i] = from_float<T>(scale * ((squared ? value : sigmoid(value)) - t[i]));
  }
}

}  // namespace

void activation_forward(const Activation& activation, const void* x, void* y, Element element,
                        std::int64_t elements, cudaStream_t stream) {
  map<1>(Forward{activation}, {x}, y, element, elements, stream);
}

void activation_backward(const Activation& activation, const void* x, const void* dy, void* dx,
                         Element element, std::int64_t elements, cudaStream_t stream) {
  map<2>(Backward{activation}, {x, dy}, dx, element, elements, stream);
}

void sum(const std::vector<const void*>& terms, void* y, Element element, std::int64_t elements,
         cudaStream_t stream) {
  const void* so_far = terms.at(0);
  for (std::size_t k = 1; k < terms.size(); ++k) {
    map<2>(Sum{}, {so_far, terms[k]}, y, element, elements, stream);
    so_far = y;
  }
}

void dropout(const DropoutMask& mask, const void* from, void* to, Element element, std::int64_t elements,
             cudaStream_t stream) {
  map<1>(Drop{mask}, {from}, to, element, elements, stream);
}

void element_loss_forward(const ElementLossShape& shape, const void* x, const float* targets, double* loss,
                          cudaStream_t stream) {
  check(cudaMemsetAsync(loss, 0, sizeof(double), stream), "cudaMemsetAsync");
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    element_loss_sum<<<blocks_for(shape.elements), kThreads, 0, stream>>>(
        shape.squared, shape.weight, shape.elements, as<T>(x), targets, loss);
  });
  check_launch("element_loss_sum");
}

void element_loss_backward(const ElementLossShape& shape, const void* x, const float* targets, void* dx,
                           cudaStream_t stream) {
  const double slope = (shape.squared ? 2 : 1) * shape.weight / shape.elements;
  with_type(shape.element, [&](auto type) {
    using T = typename decltype(type)::type;
    element_loss_slope<<<blocks_for(shape.elements), kThreads, 0, stream>>>(
        shape.squared, static_cast<float>(slope), shape.elements, as<T>(x), targets, as<T>(dx));
  });
  check_launch("element_loss_slope");
}

}  // namespace stepcast::cudnn
