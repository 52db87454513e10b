#pragma once

#include <memory>
#include <vector>

#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/network/backend.hpp"

namespace stepcast::cudnn {

/// A group that converts the parameters of its layers between fp32 and the device's element type; null if
/// these are the same. Makes lists in the device's memory, so that it cannot be made while a graph is
/// captured.
std::unique_ptr<LayerGroup> make_group(const std::shared_ptr<Device>& device,
                                       const std::vector<LayerKernel*>& layers);

/// A backend on a device that the caller shares, to time and probe it.
std::unique_ptr<Backend> make_backend(std::shared_ptr<Device> device);

}  // namespace stepcast::cudnn
