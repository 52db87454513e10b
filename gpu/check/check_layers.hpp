#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/network/backend.hpp"

namespace stepcast {

/// Deviation of one array of one layer from the reference in double precision: the largest difference divided
/// by the larger of 1 and the largest expected value.
struct Deviation {
  std::string layer;  ///< such as "convolution 3-D"
  std::string array;  ///< such as "output", "input 0" or "parameter 1"
  double error = 0;
  double allowance = 1;  ///< factor on rounding_tolerance for the algorithms that computed it
};

/// Largest deviation that rounding explains. In fp32 2e-5, as on the CPU: sums of up to a few hundred
/// products of numbers below 1. In tf32 and fp16 (10 bits of mantissa) and bf16 (7 bits) four roundings of
/// inputs, weights and outputs may add up, on sums of a few units.
double rounding_tolerance(GpuPrecision precision);

/// Factor on the tolerance for a layer whose notes name these algorithms: 10 for Winograd's and FFT
/// convolutions, which add and subtract transformed inputs, so that they round more often than sums of
/// products do; else 1. Assumed, until a GPU has shown how large their errors are.
double allowance_of(const std::string& notes);

/// Checks every kind of layer, forward and backward, in shapes that reveal mistakes. A layer that the backend
/// refuses has an infinite error, and `array` is the error message.
/// @param on_checked  gets the deviations of each layer when it is checked; may be empty
std::vector<Deviation> check_layers(
    Backend& backend, const std::function<void(std::span<const Deviation> layer)>& on_checked = {});

/// Compares the loss and all gradients of a small transformer in two tensor-parallel shards with those of the
/// whole network on the same backend: the largest difference divided by the largest expected value. Both
/// shards run on this device in lockstep. If the backend refuses a layer, the error is infinite and `array`
/// is the error message.
std::vector<Deviation> check_partitioned_layers(Backend& backend);

}  // namespace stepcast
