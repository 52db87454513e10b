#pragma once

#include "kernels/backend.hpp"
#include "kernels/cudnn/device.hpp"

namespace stepcast::cudnn {

/// For what times and probes the device that a network runs on.
std::unique_ptr<Backend> make_backend(std::shared_ptr<Device> device);

}  // namespace stepcast::cudnn
