#pragma once

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "kernels/gpu_capture.hpp"

namespace stepcast::test {

/// False where there is no GPU; then says which one is missing, in the words by which ctest knows a skipped
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
