#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/network/backend.hpp"

namespace stepcast {

/// Number format of matrix products and convolutions. Sums, parameters and the optimizer's state are fp32 in
/// all of them.
enum class GpuPrecision {
  f32,   ///< no tensor cores
  tf32,  ///< fp32 in memory, 10 bits of mantissa inside products
  f16,   ///< activations and copies of weights in fp16; gradients are not scaled
  bf16
};

const char* to_string(GpuPrecision precision);

/// Order of the elements of images. Sequences, vectors and volumes are always row-major.
enum class ImageLayout { nchw, nhwc };

struct GpuOptions {
  int device = 0;  ///< CUDA's number of the GPU
  GpuPrecision precision = GpuPrecision::f32;
  ImageLayout layout = ImageLayout::nchw;
  std::size_t workspace = std::size_t{1}
                          << 30;  ///< limit of the memory that libraries use beside tensors [bytes]
  bool fuses = true;  ///< batch norm computes the ReLU after it, and one kernel updates all parameters
};

/// "cuda:0" -> 0.
/// @throws InputError for anything else
int device_number(const std::string& text);

/// Number of GPUs that CUDA finds; 0 if CUDA is not available.
int gpu_count();

/// @throws InputError if there is no such GPU
std::unique_ptr<Backend> make_cudnn_backend(const GpuOptions& options);

}  // namespace stepcast
