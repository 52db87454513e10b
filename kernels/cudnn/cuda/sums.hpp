#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cudnn/cuda/element.hpp"

/// Kernels that sum over all dimensions except channels (sums.cu), and batch norm made of them. They are
/// started on a stream and return at once.
namespace stepcast::cudnn {

/// A tensor {outer, channels, inner}: element i has channel i / inner % channels.
struct Channels {
  std::int64_t outer = 0, channels = 0, inner = 1;
  Element element = Element::f32;

  constexpr std::int64_t elements() const { return outer * channels * inner; }
};

/// Memory for partial sums: two floats per channel and part. More memory allows more parts at once.
struct Scratch {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// sums[c] = sum over channel c. Moves n e bytes.
void channel_sums(const Channels& shape, const void* x, float* sums, const Scratch& scratch,
                  cudaStream_t stream);

/// Gradients of scale and shift of a layer norm, whose rows are `outer` and whose features are channels.
/// Moves 2 n e bytes.
void layer_norm_parameters(const Channels& shape, const void* x, const void* dy, const float* mean,
                           const float* inverse, float* scale_gradient, float* shift_gradient,
                           const Scratch& scratch, cudaStream_t stream);

/// Arrays of a batch norm for element types that cuDNN's batch norm is not known to support. `inverse` is 1 /
/// sqrt(variance + 1e-5). Running statistics keep 0.9 of their value; the running variance divides by n - 1,
/// as cuDNN's does. The forward pass reads x for the statistics and again for y: 3 n e bytes. The backward
/// pass reads x and dy twice: 5 n e.
struct BatchNormArrays {
  const float *scale = nullptr, *shift = nullptr;
  float *mean = nullptr, *inverse = nullptr;                   ///< statistics of the batch, per channel
  float *running_mean = nullptr, *running_variance = nullptr;  ///< may be null
};
void batch_norm_forward(const Channels& shape, const BatchNormArrays& arrays, const void* x, void* y,
                        const Scratch& scratch, cudaStream_t stream);
/// Writes the gradients of scale and shift, and dx.
void batch_norm_backward(const Channels& shape, const BatchNormArrays& arrays, const void* x, const void* dy,
                         void* dx, float* scale_gradient, float* shift_gradient, const Scratch& scratch,
                         cudaStream_t stream);

/// A batch norm, the addition of a term unless `added` is null, and a ReLU in the same kernels:
///   y = max(0, norm(x) + added)
/// The forward pass moves 3 n e bytes, 4 n e with an addition; separate kernels move 5 and 8. The backward
/// pass computes the ReLU's mask from x and moves 5 n e. With an addition it reads y, and writes the gradient
/// of the added term, which separate kernels have as well: 7 n e. Separate kernels move 8.
struct NormReluArrays {
  const void *x = nullptr, *added = nullptr;
  void* y = nullptr;
  const void* dy = nullptr;
  void* masked = nullptr;  ///< only with an addition: dy where y > 0, and 0 elsewhere
  void* dx = nullptr;
};
void batch_norm_relu_forward(const Channels& shape, const BatchNormArrays& norm, const NormReluArrays& arrays,
                             const Scratch& scratch, cudaStream_t stream);
/// Writes the gradients of scale and shift, `masked` and dx.
void batch_norm_relu_backward(const Channels& shape, const BatchNormArrays& norm,
                              const NormReluArrays& arrays, float* scale_gradient, float* shift_gradient,
                              const Scratch& scratch, cudaStream_t stream);

/// Synchronized batch norm: batch norm over a group of devices. Each pass has two parts around an all-reduce
/// of `sums`, which are two lists with one number per channel each. `count` is the number of elements per
/// channel in the whole group. The bytes are those of batch norm.
///   forward   sums of x and x^2        then mean, inverse, running statistics and y
///   backward  sums of dy and dy x^     then dx; the sums of the own part are the gradients of shift and
///   scale
void synchronized_batch_norm_sums(const Channels& shape, const void* x, float* sums, const Scratch& scratch,
                                  cudaStream_t stream);
void synchronized_batch_norm_forward(const Channels& shape, const BatchNormArrays& arrays, const float* sums,
                                     double count, const void* x, void* y, cudaStream_t stream);
void synchronized_batch_norm_sums_back(const Channels& shape, const BatchNormArrays& arrays, const void* x,
                                       const void* dy, float* sums, const Scratch& scratch,
                                       cudaStream_t stream);
void synchronized_batch_norm_backward(const Channels& shape, const BatchNormArrays& arrays, const float* sums,
                                      double count, const void* x, const void* dy, void* dx,
                                      cudaStream_t stream);

}  // namespace stepcast::cudnn
