#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/backend.hpp"

namespace stepcast {

/// What products are computed in; sums are fp32 in all of them, parameters and the optimizer's state too.
enum class GpuPrecision {
  f32,   ///< no tensor cores
  tf32,  ///< fp32 in memory, 10 bits of mantissa inside products
  f16,   ///< activations and copies of weights in fp16; gradients are not scaled
  bf16
};

const char* to_string(GpuPrecision precision);

/// Order of the elements of images. Sequences and vectors are row-major always, volumes too.
enum class ImageLayout { nchw, nhwc };

struct GpuOptions {
  int device = 0;  ///< as CUDA counts them
  GpuPrecision precision = GpuPrecision::f32;
  ImageLayout layout = ImageLayout::nchw;
  std::size_t workspace = std::size_t{1} << 30;  ///< that libraries may use beside tensors, at most [bytes]
};

/// "cuda:0" -> 0.
/// @throws InputError for anything else
int device_number(const std::string& text);

/// GPUs that CUDA sees here; 0 where it cannot say.
int gpu_count();

/// @throws InputError, one line, where there is no such device
std::unique_ptr<Backend> make_cudnn_backend(const GpuOptions& options);

}  // namespace stepcast
