#pragma once

#include <memory>

#include "kernels/network/backend.hpp"

namespace stepcast::test {

/// A oneDNN backend that behaves like a GPU: only its kernels and copies can access the memory of `allocate`.
/// Any other access ends the process with a segmentation fault.
std::unique_ptr<Backend> make_guarded_backend();

}  // namespace stepcast::test
