#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cudnn/element.hpp"

/// Kernels that sum over everything but one dimension (sums.cu), and batch norm made of them. Started on a
/// stream.
namespace stepcast::cudnn {

/// Element i of a tensor has channel i / inner % channels: {outer, channels, inner}.
struct Channels {
  std::int64_t outer = 0, channels = 0, inner = 1;
  Element element = Element::f32;

  constexpr std::int64_t elements() const { return outer * channels * inner; }
};

/// Memory for partial sums: two floats a channel and part; more of it means more parts at once.
struct Scratch {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// sums[c] = sum over the channel.
void channel_sums(const Channels& shape, const void* x, float* sums, const Scratch& scratch,
                  cudaStream_t stream);

/// Of layer norm, whose rows are `outer` and whose features are channels: scale's and shift's gradients.
void layer_norm_parameters(const Channels& shape, const void* x, const void* dy, const float* mean,
                           const float* inverse, float* scale_gradient, float* shift_gradient,
                           const Scratch& scratch, cudaStream_t stream);

/// Batch norm for elements that cuDNN's own is not known to take. `inverse` is 1 / sqrt(variance + 1e-5); the
/// running statistics keep 0.9 of their value, the variance with n - 1 for n, as cuDNN has it.
struct BatchNormArrays {
  const float *scale = nullptr, *shift = nullptr;
  float *mean = nullptr, *inverse = nullptr;                   ///< of the batch, a channel
  float *running_mean = nullptr, *running_variance = nullptr;  ///< may be null
};
void batch_norm_forward(const Channels& shape, const BatchNormArrays& arrays, const void* x, void* y,
                        const Scratch& scratch, cudaStream_t stream);
/// Writes both parameters' gradients and dx.
void batch_norm_backward(const Channels& shape, const BatchNormArrays& arrays, const void* x, const void* dy,
                         void* dx, float* scale_gradient, float* shift_gradient, const Scratch& scratch,
                         cudaStream_t stream);

/// Batch norm over a group of devices, each pass in two parts: `sums`, two numbers a channel of the own part
/// one list after the other, and, when these are the group's, what comes after. `count` is the elements a
/// channel of the group.
///   forward   sums of x and x^2        then mean, inverse, running statistics and y
///   backward  sums of dy and dy x^     then dx; those of the own part are shift's and scale's gradients
void group_norm_sums(const Channels& shape, const void* x, float* sums, const Scratch& scratch,
                     cudaStream_t stream);
void group_norm_forward(const Channels& shape, const BatchNormArrays& arrays, const float* sums, double count,
                        const void* x, void* y, cudaStream_t stream);
void group_norm_sums_back(const Channels& shape, const BatchNormArrays& arrays, const void* x, const void* dy,
                          float* sums, const Scratch& scratch, cudaStream_t stream);
void group_norm_backward(const Channels& shape, const BatchNormArrays& arrays, const float* sums,
                         double count, const void* x, const void* dy, void* dx, cudaStream_t stream);

}  // namespace stepcast::cudnn
