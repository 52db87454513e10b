#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cudnn/rows.hpp"

/// softmax_cross_entropy over classes that are dealt out over devices (shared_loss.cu), in parts around a sum
/// over them. Started on a stream.
namespace stepcast::cudnn {

/// What a device scores: every row, of the largest share of classes. It has `classes` from `first` on; what
/// its rows have beyond these is padding.
struct SharedRows {
  Rows rows;
  std::int64_t first = 0, classes = 0;
};

/// e = exp(x), 0 for padding; sums: of every row that of e, and the target's score where the target is one of
/// the device's own classes, else 0. One after the other, row by row.
void shared_loss_sums(const SharedRows& shape, const void* x, const float* targets, float* e, float* sums,
                      cudaStream_t stream);
/// With the sums over all devices: `loss` = weight x the mean over all rows of log(sum of e) - target's
/// score.
void shared_loss_value(std::int64_t rows, double weight, const float* sums, double* loss,
                       cudaStream_t stream);
/// dx = weight (e / sum of e - [class is the target]) / rows; 0 for padding.
void shared_loss_backward(const SharedRows& shape, double weight, const float* e, const float* sums,
                          const float* targets, void* dx, cudaStream_t stream);

}  // namespace stepcast::cudnn
