#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "strategies/arithmetic/optimizer.hpp"

/// Kernels on fp32 parameters and gradients (optimizer_updates.cu). They are started on a stream and return
/// at once.
namespace stepcast::cudnn {

/// One kernel per array, which reads the gradient, and reads and writes value and states: 12 n bytes with no
/// state, 20 n with one and 28 n with two.
void update(const Optimizer& optimizer, const UpdateArrays& arrays, cudaStream_t stream);

/// Arrays of quantize_one_bit (strategies/arithmetic): `signs` has ceil(rows / 32) words per column, `below`
/// and `above` one number per column. To quantize moves 20 n bytes (the residual is read and written twice),
/// to restore 4 n and the words.
struct OneBitArrays {
  std::uint32_t* signs = nullptr;
  float *below = nullptr, *above = nullptr;
};
void quantize_one_bit(const float* gradient, std::int64_t elements, std::int64_t rows, float* residual,
                      const OneBitArrays& sent, cudaStream_t stream);
void restore_one_bit(const OneBitArrays& sent, std::int64_t elements, std::int64_t rows, float* gradient,
                     cudaStream_t stream);

/// Compression to fp16 with error feedback, as in strategies/arithmetic: residual += gradient; sent =
/// residual in fp16; residual -= sent. Moves 14 n bytes, back 6 n.
void to_halves_with_feedback(const float* gradient, float* residual, std::uint16_t* sent,
                             std::int64_t elements, cudaStream_t stream);
void from_halves(const std::uint16_t* sent, float* gradient, std::int64_t elements, cudaStream_t stream);

/// Keeps the GPU busy: copies an array repeatedly on few thread blocks. `elements` is a multiple of 4.
void run_background_load(const float* from, float* to, std::int64_t elements, int rounds, int blocks,
                         cudaStream_t stream);

}  // namespace stepcast::cudnn
