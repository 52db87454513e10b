#pragma once

#include <cstdint>
#include <string>

#include "kernels/device_memory.hpp"
#include "models/compression.hpp"

namespace stepcast {

/// A device whose gradients are compressed by the host, which copies them; none where there is no memory.
struct GradientDevice {
  std::string name;
  DeviceMemory* memory = nullptr;
};

struct CompressionCapture {
  std::string name;                 ///< of the file
  std::string command;              ///< that makes it again
  std::size_t elements = 8U << 20;  ///< of the gradient: with what is owed beyond the caches
  std::size_t rows = 2048;          ///< of a column, one_bit
  double density = 0.01;            ///< top_k
  int repeats = 15;
  GradientDevice beside = {};  ///< whose gradients they are; none: the host's own
};

/// Times the kernels of strategies/arithmetic that compress gradients and bring them back, and a plain copy,
/// on one thread: every repeat runs all of them in turn on a random gradient, error feedback included. Of a
/// device's gradient each takes the way there and back with it, as real runs do; nobody else has the device,
/// so copies count alike on both clocks.
CompressionTrace capture_compression(const CompressionCapture& options);

}  // namespace stepcast
