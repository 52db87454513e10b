#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/vocab_parallel_loss.hpp"

namespace stepcast::cudnn {
namespace {

/// Index of the target among the device's own classes; an index outside of them, also a negative one, belongs
/// to another device.
__device__ std::int64_t own_target(const float* targets, std::int64_t row, std::int64_t first) {
  return static_cast<std::int64_t>(targets[row]) - first;
}

/// One block per row.
template <class T>
__global__ void sums_of_rows(std::int64_t length, std::int64_t first, std::int64_t classes, const T* all_x,
                             const float* targets, float* all_e, float* sums) {
  const std::int64_t row = blockIdx.x, target = own_target(targets, row, first);
  const T* x = all_x + row * length;
  float* e = all_e + row * length;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    e[i] = i < classes ? expf(to_float(x[i])) : 0.f;
    sum += e[i];
  }
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  sums[2 * row] = sum;
  sums[2 * row + 1] = target >= 0 && target < classes ? to_float(x[target]) : 0.f;
}

__global__ void value_of_rows(std::int64_t rows, double weight, const float* sums, double* loss) {
  float sum = 0;
  for (std::int64_t row = first_index(); row < rows; row += index_step()) {
    sum += logf(sums[2 * row]) - sums[2 * row + 1];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(loss, weight * static_cast<double>(sum) / static_cast<double>(rows));
}

template <class T>
__global__ void slopes_of_rows(std::int64_t length, std::int64_t first, std::int64_t classes, float scale,
                               const float* all_e, const float* sums, const float* targets, T* all_dx) {
  const std::int64_t row = blockIdx.x, target = own_target(targets, row, first);
  const float* e = all_e + row * length;
  T* dx = all_dx + row * length;
  const float total = sums[2 * row];
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const float hit = i == target && i < classes ? 1.f : 0.f;
    dx[i] = from_float<T>(scale * (e[i] / total - hit));
  }
}

}  // namespace

void vocab_parallel_sums(const VocabShard& shape, const void* x, const float* targets, float* e, float* sums,
                         cudaStream_t stream) {
  with_type(shape.rows.element, [&](auto type) {
    using T = typename decltype(type)::type;
    sums_of_rows<<<static_cast<unsigned>(shape.rows.count), kThreads, 0, stream>>>(
        shape.rows.length, shape.first, shape.classes, static_cast<const T*>(x), targets, e, sums);
  });
  check_launch("sums_of_rows");
}

void vocab_parallel_value(std::int64_t rows, double weight, const float* sums, double* loss,
                          cudaStream_t stream) {
  check(cudaMemsetAsync(loss, 0, sizeof(double), stream), "cudaMemsetAsync");
  value_of_rows<<<blocks_for(rows), kThreads, 0, stream>>>(rows, weight, sums, loss);
  check_launch("value_of_rows");
}

void vocab_parallel_backward(const VocabShard& shape, double weight, const float* e, const float* sums,
                             const float* targets, void* dx, cudaStream_t stream) {
  const auto scale = static_cast<float>(weight / static_cast<double>(shape.rows.count));
  with_type(shape.rows.element, [&](auto type) {
    using T = typename decltype(type)::type;
    slopes_of_rows<<<static_cast<unsigned>(shape.rows.count), kThreads, 0, stream>>>(
        shape.rows.length, shape.first, shape.classes, scale, e, sums, targets, static_cast<T*>(dx));
  });
  check_launch("slopes_of_rows");
}

}  // namespace stepcast::cudnn
