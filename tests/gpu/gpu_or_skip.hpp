#pragma once

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "kernels/timing/capture.hpp"

namespace stepcast::test {

/// True if there is a GPU. If not, prints the missing device in the form by which ctest recognizes a skipped
/// test.
inline bool gpu_or_skip() {
  try {
    free_gpu_memory(0);
    return true;
  } catch (const InputError& error) {
    WARN("skipped: " << error.what());
    return false;
  }
}

}  // namespace stepcast::test
