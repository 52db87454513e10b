#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "strategies/arithmetic/optimizer.hpp"

/// Kernels on parameters and gradients (updates.cu), fp32. All are started on a stream and return at once.
namespace stepcast::cudnn {

/// One kernel an array: reads and writes every number once.
void update(const Optimizer& optimizer, const UpdateArrays& arrays, cudaStream_t stream);

/// As quantize_one_bit of strategies/arithmetic: `signs` has ceil(rows / 32) words a column; `below` and
/// `above` one number a column.
struct OneBitArrays {
  std::uint32_t* signs = nullptr;
  float *below = nullptr, *above = nullptr;
};
void quantize_one_bit(const float* gradient, std::int64_t elements, std::int64_t rows, float* owed,
                      const OneBitArrays& sent, cudaStream_t stream);
void restore_one_bit(const OneBitArrays& sent, std::int64_t elements, std::int64_t rows, float* gradient,
                     cudaStream_t stream);

/// As to_halves_with_feedback: owed += gradient; sent = owed in fp16; owed -= sent.
void to_halves_with_feedback(const float* gradient, float* owed, std::uint16_t* sent, std::int64_t elements,
                             cudaStream_t stream);
void from_halves(const std::uint16_t* sent, float* gradient, std::int64_t elements, cudaStream_t stream);

/// What runs beside a step to see how much it is slowed down, on few blocks, as a library for communication
/// would use: copies, or adds to, an array again and again. `elements` is a multiple of 4.
enum class Companion { copy, reduction };
void run_companion(Companion kind, const float* from, float* to, std::int64_t elements, int rounds,
                   int blocks, cudaStream_t stream);

/// Does nothing: what a launch costs.
void launch_nothing(cudaStream_t stream);

}  // namespace stepcast::cudnn
