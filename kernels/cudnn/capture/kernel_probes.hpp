#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cudnn/runtime/device.hpp"

namespace stepcast::cudnn {

/// A kernel of this project on large arrays.
struct KernelProbe {
  std::string name;
  double bytes = 0;  ///< that it moves, as its declaration says
  std::function<void()> call;
};

/// Kernels whose time the bandwidth of the GPU's memory limits, at the device's precision, on five arrays of
/// `elements` elements, a multiple of 65536. The calls own the arrays.
std::vector<KernelProbe> kernel_probes(const std::shared_ptr<Device>& device, std::int64_t elements);

/// Bandwidth of the GPU's memory by its clock and bus [bytes/s]; 0 if they are not known.
double memory_bandwidth(int device);

}  // namespace stepcast::cudnn
