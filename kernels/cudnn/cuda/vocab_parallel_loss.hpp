#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cudnn/cuda/rows.hpp"

/// softmax_cross_entropy over classes that are partitioned over devices (vocab_parallel_loss.cu), in two
/// parts around an all-reduce. They are started on a stream and return at once.
namespace stepcast::cudnn {

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
