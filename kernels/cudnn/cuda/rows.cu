
#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/persistent_rows.cuh"
#include "kernels/cudnn/cuda/rows.hpp"

namespace stepcast::cudnn {

namespace {

/// The row's largest element and its sum of exponentials, for all threads of the block that computes the row.
struct RowSoftmax {
  float most, total;
};

template <class T>
__device__ RowSoftmax row_softmax(const T* x, std::int64_t seen) {
  float most = -INFINITY, total = 0;
  for (std::int64_t i = threadIdx.x; i < seen; i += blockDim.x) most = fmaxf(most, to_float(x[i]));
  most = block_max(most);
  for (std::int64_t i = threadIdx.x; i < seen; i += blockDim.x) total += expf(to_float(x[i]) - most);
  return {most, block_sum(total)};
}

template <class T>
__global__ void loss_rows(std::int64_t length, double weight, const T* all_x, const float* targets, T* all_p,
                          double* loss) {
  const std::int64_t row = blockIdx.x;
  const T* x = all_x + row * length;
  T* p = all_p + row * length;
  const RowSoftmax s = row_softmax(x, length);
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    p[i] = from_float<T>(expf(to_float(x[i]) - s.most) / s.total);
  }
  if (threadIdx.x != 0) return;
  const float own = to_float(x[static_cast<std::int64_t>(targets[row])]);
  atomicAdd(loss, weight * (s.most + logf(s.total) - own) / gridDim.x);
}

template <class T>
__global__ void loss_rows_back(std::int64_t length, float scale, const T* p, const float* targets, T* dx) {
  const std::int64_t row = blockIdx.x, target = static_cast<std::int64_t>(targets[row]);
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const std::int64_t at = row * length + i;
    dx[at] = from_float<T>(scale * (to_float(p[at]) - (i == target ? 1.f : 0.f)));
  }
}

template <class T>
__global__ void softmax_of_rows(std::int64_t length, bool causal, const T* all_x, T* all_p) {
  const std::int64_t row = blockIdx.x, seen = causal ? row % length + 1 : length;
  const T* x = all_x + row * length;
  T* p = all_p + row * length;
  const RowSoftmax s = row_softmax(x, seen);
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    p[i] = from_float<T>(i < seen ? expf(to_float(x[i]) - s.most) / s.total : 0.f);
  }
}

template <class T>
__global__ void softmax_of_rows_back(std::int64_t length, float scale, const T* all_p, T* all_g) {
  const T* p = all_p + blockIdx.x * length;
  T* g = all_g + blockIdx.x * length;
  float mean = 0;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) mean += to_float(p[i]) * to_float(g[i]);
  mean = block_sum(mean);
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    g[i] = from_float<T>(scale * to_float(p[i]) * (to_float(g[i]) - mean));
  }
}

template <class T>
__global__ void normalize_rows(std::int64_t length, const T* all_x, const float* scale, const float* shift,
                               T* all_y, float* means, float* inverses) {
  const T* x = all_x + blockIdx.x * length;
  T* y = all_y + blockIdx.x * length;
  float mean = 0, variance = 0;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) mean += to_float(x[i]);
  mean = block_sum(mean) / length;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const float difference = to_float(x[i]) - mean;
    variance += difference * difference;
  }
  const float inverse = rsqrtf(block_sum(variance) / length + kEpsilon);
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    y[i] = from_float<T>(scale[i] * (to_float(x[i]) - mean) * inverse + shift[i]);
  }
  if (threadIdx.x != 0) return;
  means[blockIdx.x] = mean;
  inverses[blockIdx.x] = inverse;
}

template <class T>
__global__ void normalize_rows_back(std::int64_t length, const T* all_x, const T* all_dy, const float* scale,
                                    const float* means, const float* inverses, T* all_dx) {
  const T* x = all_x + blockIdx.x * length;
  const T* dy = all_dy + blockIdx.x * length;
  T* dx = all_dx + blockIdx.x * length;
  const float mean = means[blockIdx.x], inverse = inverses[blockIdx.x];
  float sum = 0, weighted = 0;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const float d = to_float(dy[i]) * scale[i];
    sum += d;
    weighted += d * (to_float(x[i]) - mean) * inverse;
  }
  sum = block_sum(sum) / length;
  weighted = block_sum(weighted) / length;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const float normal = (to_float(x[i]) - mean) * inverse;
    dx[i] = from_float<T>((to_float(dy[i]) * scale[i] - sum - normal * weighted) * inverse);
  }
}

unsigned blocks(const Rows& rows) {
  return rows.count;
}

/// Number of threads: whole warps, as many as the row fills, at most 8.
unsigned threads(const Rows& rows) {
  const std::int64_t warps = (rows.length + 31) / 32;
  return 32u * (warps < 8 ? warps : 8);
}

}  // namespace

void softmax_loss_forward(const Rows& rows, double weight, const void* x, const float* targets, void* p,
                          double* loss, cudaStream_t stream) {
  check(cudaMemsetAsync(loss, 0, sizeof(double), stream), "cudaMemsetAsync");
  with_type(rows.element, [&](auto type) {
    using T = typename decltype(type)::type;
    loss_rows<<<blocks(rows), threads(rows), 0, stream>>>(rows.length, weight, as<T>(x), targets, as<T>(p),
                                                          loss);
  });
  check_launch("loss_rows");
}

void softmax_loss_backward(const Rows& rows, double weight, const void* p, const float* targets, void* dx,
                           cudaStream_t stream) {
  const float scale = weight / rows.count;
  with_type(rows.element, [&](auto type) {
    using T = typename decltype(type)::type;
    loss_rows_back<<<blocks(rows), threads(rows), 0, stream>>>(rows.length, scale, as<T>(p), targets,
                                                               as<T>(dx));
  });
  check_launch("loss_rows_back");
}

void softmax_rows(const Rows& rows, bool causal, const void* scores, void* p, cudaStream_t stream) {
  const bool persistent = with_persistent_rows(
      rows.count, rows.length, rows.element, are_aligned(scores, p),
      [&]<class T, int OfRow>(Type<T>, std::integral_constant<int, OfRow>, unsigned grid, int packs) {
        softmax_of_persistent_rows<T, OfRow><<<grid, kThreads, 0, stream>>>(
            rows.count, packs, causal, static_cast<const T*>(scores), static_cast<T*>(p));
      });
  if (persistent) return check_launch("softmax_of_persistent_rows");
  with_type(rows.element, [&](auto type) {
    using T = typename decltype(type)::type;
    softmax_of_rows<<<blocks(rows), threads(rows), 0, stream>>>(rows.length, causal, as<T>(scores), as<T>(p));
  });
  check_launch("softmax_of_rows");
}

void softmax_rows_backward(const Rows& rows, float scale, const void* p, void* gradient,
                           cudaStream_t stream) {
  const bool persistent = with_persistent_rows(
      rows.count, rows.length, rows.element, are_aligned(p, gradient),
      [&]<class T, int OfRow>(Type<T>, std::integral_constant<int, OfRow>, unsigned grid, int packs) {
        softmax_of_persistent_rows_back<T, OfRow><<<grid, kThreads, 0, stream>>>(
            rows.count, packs, scale, static_cast<const T*>(p), static_cast<T*>(gradient));
      });
  if (persistent) return check_launch("softmax_of_persistent_rows_back");
  with_type(rows.element, [&](auto type) {
    using T = typename decltype(type)::type;
    softmax_of_rows_back<<<blocks(rows), threads(rows), 0, stream>>>(rows.length, scale, as<T>(p),
                                                                     as<T>(gradient));
  });
  check_launch("softmax_of_rows_back");
}

void layer_norm_forward(const Rows& rows, const void* x, const float* scale, const float* shift, void* y,
                        float* mean, float* inverse, cudaStream_t stream) {
  const bool persistent = with_persistent_rows(
      rows.count, rows.length, rows.element, are_aligned(x, scale, shift, y),
      [&]<class T, int OfRow>(Type<T>, std::integral_constant<int, OfRow>, unsigned grid, int packs) {
        normalize_persistent_rows<T, OfRow><<<grid, kThreads, 0, stream>>>(rows.count, packs, as<T>(x), scale,
                                                                           shift, as<T>(y), mean, inverse);
      });
  if (persistent) return check_launch("normalize_persistent_rows");
  with_type(rows.element, [&](auto type) {
    using T = typename decltype(type)::type;
    normalize_rows<<<blocks(rows), threads(rows), 0, stream>>>(rows.length, as<T>(x), scale, shift, as<T>(y),
                                                               mean, inverse);
  });
  check_launch("normalize_rows");
}

void layer_norm_backward(const Rows& rows, const void* x, const void* dy, const float* scale,
                         const float* mean, const float* inverse, void* dx, cudaStream_t stream) {
  const bool persistent = with_persistent_rows(
      rows.count, rows.length, rows.element, are_aligned(x, dy, scale, dx),
      [&]<class T, int OfRow>(Type<T>, std::integral_constant<int, OfRow>, unsigned grid, int packs) {
        normalize_persistent_rows_back<T, OfRow><<<grid, kThreads, 0, stream>>>(
            rows.count, packs, as<T>(x), as<T>(dy), scale, mean, inverse, as<T>(dx));
      });
  if (persistent) return check_launch("normalize_persistent_rows_back");
  with_type(rows.element, [&](auto type) {
    using T = typename decltype(type)::type;
    normalize_rows_back<<<blocks(rows), threads(rows), 0, stream>>>(rows.length, as<T>(x), as<T>(dy), scale,
                                                                    mean, inverse, as<T>(dx));
  });
  check_launch("normalize_rows_back");
}

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
  if (threadIdx.x == 0) atomicAdd(loss, weight * sum / rows);
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
        shape.rows.length, shape.first, shape.classes, as<T>(x), targets, e, sums);
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
  const float scale = weight / shape.rows.count;
  with_type(shape.rows.element, [&](auto type) {
    using T = typename decltype(type)::type;
    slopes_of_rows<<<static_cast<unsigned>(shape.rows.count), kThreads, 0, stream>>>(
        shape.rows.length, shape.first, shape.classes, scale, e, sums, targets, as<T>(dx));
  });
  check_launch("slopes_of_rows");
}

}  // namespace stepcast::cudnn
