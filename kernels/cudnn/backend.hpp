#pragma once

#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/network/backend.hpp"

namespace stepcast::cudnn {

/// A backend on a device that the caller shares, to time and probe it.
std::unique_ptr<Backend> make_backend(std::shared_ptr<Device> device);

}  // namespace stepcast::cudnn
