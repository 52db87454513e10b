#pragma once

#include <functional>
#include <span>
#include <string>

#include "kernels/network/device_memory.hpp"
#include "models/layer_times/compression_times.hpp"

namespace stepcast {

/// A device whose gradients the host copies and compresses; without `memory` gradients are the host's own.
struct GradientDevice {
  std::string name;
  DeviceMemory* memory = nullptr;
};

struct CompressionCapture {
  std::string name;                 ///< name of the trace
  std::string command;              ///< command line that repeats the capture
  std::size_t elements = 8U << 20;  ///< elements of the gradient; with the residuals it exceeds the caches
  std::size_t rows = 2048;          ///< rows per column of one_bit
  double density = 0.01;            ///< share of elements that top_k sends
  int repeats = 15;
  GradientDevice device = {};  ///< device whose gradients are compressed
  /// Trains up to the next gradient of `elements` elements in the host's memory, which the restored gradient
  /// replaces. Empty: one random gradient, again and again.
  std::function<std::span<float>()> next_gradient = {};
};

/// Times the kernels of strategies/arithmetic that compress and decompress gradients, and a plain copy, on
/// one thread. Every repetition runs all of them in turn, each with error feedback of its own. The search of
/// top_k depends on how the magnitudes are distributed, and all kernels on what the caches hold, so only
/// gradients of backward passes (`next_gradient`) give the times of training. For a device's gradient each
/// time includes the copies from the device and back, as in real runs. No other program uses the device, so
/// the copies count equally on both clocks.
CompressionTrace capture_compression(const CompressionCapture& options);

}  // namespace stepcast
