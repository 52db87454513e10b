#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/cudnn/cuda/element.hpp"
#include "models/network/layer.hpp"

/// Element-wise kernels (elements.cu). They are started on a stream and return at once.
namespace stepcast::cudnn {

/// relu, leaky_relu, sigmoid, tanh, elu or gelu; alpha is the slope of leaky_relu or the alpha of elu. The
/// forward pass moves 2 n e bytes, the backward pass 3 n e.
struct Activation {
  LayerKind kind{};
  float alpha = 0;
};
void activation_forward(const Activation& activation, const void* x, void* y, Element element,
                        std::int64_t elements, cudaStream_t stream);
void activation_backward(const Activation& activation, const void* x, const void* dy, void* dx,
                         Element element, std::int64_t elements, cudaStream_t stream);

/// y = sum of two or more terms. Each term after the first moves 3 n e bytes.
void sum(const std::vector<const void*>& terms, void* y, Element element, std::int64_t elements,
         cudaStream_t stream);

/// A dropout mask, drawn by kernels/network/dropout_mask.hpp. Moves 2 n e bytes.
struct DropoutMask {
  std::uint32_t key = 0, threshold = 0;
  float scale = 1;  ///< factor on elements that are kept
};
void dropout(const DropoutMask& mask, const void* from, void* to, Element element, std::int64_t elements,
             cudaStream_t stream);

/// A loss over elements: mean_squared_error (squared) or sigmoid_cross_entropy.
struct ElementLossShape {
  bool squared = false;
  double weight = 1;  ///< factor on the mean and its gradient
  Element element{};
  std::int64_t elements = 0;
};
/// Writes the loss: weight x mean over all elements. Moves n (e + 4) bytes, the backward pass n (2 e + 4).
void element_loss_forward(const ElementLossShape& shape, const void* x, const float* targets, double* loss,
                          cudaStream_t stream);
void element_loss_backward(const ElementLossShape& shape, const void* x, const float* targets, void* dx,
                           cudaStream_t stream);

}  // namespace stepcast::cudnn
