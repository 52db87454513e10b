#pragma once

#include <memory>

#include "kernels/backend.hpp"

namespace stepcast::test {

/// oneDNN as if it were a GPU: what `allocate` gives can be touched by its kernels and its copies alone.
/// Everything else that reads or writes there ends the process with a segmentation fault.
std::unique_ptr<Backend> make_guarded_backend();

}  // namespace stepcast::test
