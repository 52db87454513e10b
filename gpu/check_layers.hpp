#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/gpu.hpp"

namespace stepcast {

/// How far one array of one layer is from the plain loops in double precision: the largest difference over
/// the larger of 1 and the largest expected value.
struct Deviation {
  std::string layer;  ///< "convolution 3-D"
  std::string array;  ///< "output", "input 0", "parameter 1"
  double error = 0;
};

/// What rounding explains: sums of up to a few hundred products of numbers below 1 in fp32 (2e-5, as on the
/// CPU), and one rounding of inputs, weights and outputs to 10 (tf32, fp16) or 7 bits (bf16) of mantissa,
/// four of which may add up, on sums that are at most some units large.
double rounding_tolerance(GpuPrecision precision);

/// Every kind of layer at shapes that catch mistakes, forward and backward. A layer that the backend refuses
/// has an infinite error; its array is the refusal.
std::vector<Deviation> check_layers(Backend& backend);

}  // namespace stepcast
