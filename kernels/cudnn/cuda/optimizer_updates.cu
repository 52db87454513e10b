#include <cmath>

#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/optimizer_updates.hpp"

namespace stepcast::cudnn {
namespace {

struct Rates {
  float rate, momentum, keep, add, square_scale, epsilon;
};

__global__ void sgd(UpdateArrays a, Rates r) {
  for (std::int64_t i = first_index(); i < static_cast<std::int64_t>(a.elements); i += index_step()) {
    float step = a.scale * a.gradient[i];
    if (a.state[0] != nullptr) a.state[0][i] = step = r.momentum * a.state[0][i] + step;
    a.value[i] -= r.rate * step;
  }
}

__global__ void scaled_by_root(UpdateArrays a, Rates r) {
  for (std::int64_t i = first_index(); i < static_cast<std::int64_t>(a.elements); i += index_step()) {
    const float g = a.scale * a.gradient[i], squares = r.keep * a.state[0][i] + r.add * g * g;
    a.state[0][i] = squares;
    a.value[i] -= r.rate * g / (sqrtf(squares) + r.epsilon);
  }
}

__global__ void adam(UpdateArrays a, Rates r) {
  for (std::int64_t i = first_index(); i < static_cast<std::int64_t>(a.elements); i += index_step()) {
    const float g = a.scale * a.gradient[i];
    const float first = a.state[0][i] = r.momentum * a.state[0][i] + (1 - r.momentum) * g;
    const float second = a.state[1][i] = r.keep * a.state[1][i] + (1 - r.keep) * g * g;
    a.value[i] -= r.rate * first / (sqrtf(second * r.square_scale) + r.epsilon);
  }
}

/// One block per column: computes the means of both signs, then the bits and the residuals.
__global__ void quantize_column(const float* gradient, std::int64_t elements, std::int64_t rows,
                                float* residual, OneBitArrays sent) {
  const std::int64_t begin = blockIdx.x * rows, length = min(rows, elements - begin);
  float above = 0, below = 0, positive = 0;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const float v = gradient[begin + i] + residual[begin + i];
    residual[begin + i] = v;
    if (v >= 0) {
      above += v;
      positive += 1;
    } else {
      below += v;
    }
  }
  above = block_sum(above);
  below = block_sum(below);
  positive = block_sum(positive);  // an exact count up to 16 million rows
  const float negative = length - positive;
  above = positive > 0 ? above / positive : 0.f;
  below = negative > 0 ? below / negative : 0.f;
  std::uint32_t* words = sent.signs + blockIdx.x * ((rows + 31) / 32);
  for (std::int64_t first = 0; first < length;
       first += blockDim.x) {  // all threads make the same number of iterations
    const std::int64_t i = first + threadIdx.x;
    const float v = i < length ? residual[begin + i] : -1.f;
    const unsigned bits = __ballot_sync(0xffffffffu, i < length && v >= 0);
    if (i < length) residual[begin + i] = v - (v >= 0 ? above : below);
    if (threadIdx.x % 32 == 0 && i < length) words[i / 32] = bits;
  }
  if (threadIdx.x != 0) return;
  sent.above[blockIdx.x] = above;
  sent.below[blockIdx.x] = below;
}

__global__ void restore_columns(OneBitArrays sent, std::int64_t elements, std::int64_t rows,
                                float* gradient) {
  const std::int64_t words = (rows + 31) / 32;
  for (std::int64_t i = first_index(); i < elements; i += index_step()) {
    const std::int64_t column = i / rows, row = i % rows;
    const bool positive = (sent.signs[column * words + row / 32] >> (row % 32)) & 1u;
    gradient[i] = positive ? sent.above[column] : sent.below[column];
  }
}

__global__ void halve(const float* gradient, float* residual, __half* sent, std::int64_t elements) {
  for (std::int64_t i = first_index(); i < elements; i += index_step()) {
    const float v = residual[i] + gradient[i];
    sent[i] = __float2half_rn(v);
    residual[i] = v - __half2float(sent[i]);
  }
}

__global__ void unhalve(const __half* sent, float* gradient, std::int64_t elements) {
  for (std::int64_t i = first_index(); i < elements; i += index_step()) gradient[i] = __half2float(sent[i]);
}

/// Each thread keeps several packs of 16 bytes in flight; otherwise few blocks would not use the memory's
/// bandwidth.
__global__ void background_load(const float4* from, float4* to, std::int64_t packs, int rounds) {
  constexpr int kInFlight = 4;
  const std::int64_t step = index_step();
  for (int round = 0; round < rounds; ++round) {
    for (std::int64_t i = first_index(); i < packs; i += kInFlight * step) {
      float4 moved[kInFlight];
      for (int k = 0; k < kInFlight; ++k) {
        const std::int64_t at = i + k * step;
        if (at < packs) moved[k] = from[at];
      }
      for (int k = 0; k < kInFlight; ++k) {
        if (i + k * step < packs) to[i + k * step] = moved[k];
      }
    }
  }
}

}  // namespace

void update(const Optimizer& o, const UpdateArrays& arrays, cudaStream_t stream) {
  Rates r{};
  r.rate = o.learning_rate;
  r.momentum = o.momentum;
  r.keep = o.decay;
  r.add = 1 - r.keep;
  r.epsilon = o.epsilon;
  const unsigned blocks = blocks_for(arrays.elements);
  UpdateArrays a = arrays;
  switch (o.kind) {
    case Optimizer::Kind::sgd:
      if (o.momentum == 0) a.state[0] = nullptr;
      sgd<<<blocks, kThreads, 0, stream>>>(a, r);
      break;
    case Optimizer::Kind::adagrad:
      r.keep = r.add = 1;
      scaled_by_root<<<blocks, kThreads, 0, stream>>>(a, r);
      break;
    case Optimizer::Kind::rmsprop:
      scaled_by_root<<<blocks, kThreads, 0, stream>>>(a, r);
      break;
    case Optimizer::Kind::adam: {
      const double t = arrays.step;
      r.rate = o.learning_rate / (1 - std::pow(o.momentum, t));
      r.square_scale = 1 / (1 - std::pow(o.decay, t));
      adam<<<blocks, kThreads, 0, stream>>>(a, r);
    }
  }
  check_launch("update");
}

void quantize_one_bit(const float* gradient, std::int64_t elements, std::int64_t rows, float* residual,
                      const OneBitArrays& sent, cudaStream_t stream) {
  const unsigned columns = (elements + rows - 1) / rows;
  quantize_column<<<columns, kThreads, 0, stream>>>(gradient, elements, rows, residual, sent);
  check_launch("quantize_column");
}

void restore_one_bit(const OneBitArrays& sent, std::int64_t elements, std::int64_t rows, float* gradient,
                     cudaStream_t stream) {
  restore_columns<<<blocks_for(elements), kThreads, 0, stream>>>(sent, elements, rows, gradient);
  check_launch("restore_columns");
}

void to_halves_with_feedback(const float* gradient, float* residual, std::uint16_t* sent,
                             std::int64_t elements, cudaStream_t stream) {
  halve<<<blocks_for(elements), kThreads, 0, stream>>>(gradient, residual, reinterpret_cast<__half*>(sent),
                                                       elements);
  check_launch("halve");
}

void from_halves(const std::uint16_t* sent, float* gradient, std::int64_t elements, cudaStream_t stream) {
  unhalve<<<blocks_for(elements), kThreads, 0, stream>>>(reinterpret_cast<const __half*>(sent), gradient,
                                                         elements);
  check_launch("unhalve");
}

void run_background_load(const float* from, float* to, std::int64_t elements, int rounds, int blocks,
                         cudaStream_t stream) {
  background_load<<<static_cast<unsigned>(blocks), 512, 0, stream>>>(
      reinterpret_cast<const float4*>(from), reinterpret_cast<float4*>(to), elements / 4, rounds);
  check_launch("background_load");
}

}  // namespace stepcast::cudnn
