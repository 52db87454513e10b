#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cudnn/cuda/element.hpp"

/// Kernels over rows of a matrix whose last dimension is contiguous (rows.cu). They are started on a stream
/// and return at once.

namespace stepcast::cudnn {

/// A row is read once into registers, or stays in a cache after its first reading, so that all passes over it
/// count once. The floor of each kernel is its bytes over the memory's bandwidth.
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

/// softmax_cross_entropy over classes that are partitioned over devices, in two parts around an all-reduce.
/// The scores of one device: all rows, each as long as the largest share of classes. The device has `classes`
/// classes from `first` on; further elements of a row are padding.
struct VocabShard {
  Rows rows;
  std::int64_t first = 0, classes = 0;
};

/// e = exp(x), 0 for padding. `sums` has two numbers per row: the sum of e, and the target's score if the
/// target is one of the device's own classes, else 0. Moves n (e + 4) bytes, the backward pass as many.
void vocab_parallel_sums(const VocabShard& shape, const void* x, const float* targets, float* e, float* sums,
                         cudaStream_t stream);
/// Computes the loss from the sums over all devices: loss = weight x the mean over all rows of log(sum of e)
/// - target's score.
void vocab_parallel_value(std::int64_t rows, double weight, const float* sums, double* loss,
                          cudaStream_t stream);
/// dx = weight (e / sum of e - [class is the target]) / rows; 0 for padding.
void vocab_parallel_backward(const VocabShard& shape, double weight, const float* e, const float* sums,
                             const float* targets, void* dx, cudaStream_t stream);

}  // namespace stepcast::cudnn
