#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cudnn/cuda/element.hpp"

/// Kernels over rows of a matrix whose last dimension is contiguous (rows.cu). They are started on a stream
/// and return at once.
namespace stepcast::cudnn {

/// A row that its block has read stays in a cache, so that all passes over it count once.
struct Rows {
  std::int64_t count = 0, length = 0;
  Element element = Element::f32;
};

/// p = softmax of each row; loss = weight x the mean over all rows of -log p[target]. Moves 2 n e bytes.
void softmax_loss_forward(const Rows& rows, double weight, const void* x, const float* targets, void* p,
                          double* loss, cudaStream_t stream);
/// dx = weight (p - [class is the target]) / rows. Moves 2 n e bytes.
void softmax_loss_backward(const Rows& rows, double weight, const void* p, const float* targets, void* dx,
                           cudaStream_t stream);

/// p = softmax of each row of the scores. Causal: row r uses only its first r % length + 1 entries. Moves 2 n
/// e bytes, causal three quarters of them.
void softmax_rows(const Rows& rows, bool causal, const void* scores, void* p, cudaStream_t stream);
/// Replaces the gradient of p by scale x the gradient of the scores. Moves 3 n e bytes.
void softmax_rows_backward(const Rows& rows, float scale, const void* p, void* gradient, cudaStream_t stream);

/// y = scale (x - mean) / deviation + shift; `mean` and `inverse` (1 / deviation) have one number per row.
/// Moves 2 n e bytes, the backward pass 3 n e.
void layer_norm_forward(const Rows& rows, const void* x, const float* scale, const float* shift, void* y,
                        float* mean, float* inverse, cudaStream_t stream);
void layer_norm_backward(const Rows& rows, const void* x, const void* dy, const float* scale,
                         const float* mean, const float* inverse, void* dx, cudaStream_t stream);

}  // namespace stepcast::cudnn
