#pragma once

#include <memory>

#include "kernels/network/backend.hpp"

namespace stepcast {

/// The backend of oneDNN, which computes on the processor.
std::unique_ptr<Backend> make_onednn_backend();

}  // namespace stepcast
