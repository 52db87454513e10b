#pragma once

#include <string>

#include "core/units.hpp"

namespace stepcast {

/// "Intel(R) Xeon(R) Processor @ 2.50GHz, 2 cores": model name of the first processor and how many there are.
std::string processor_name();

/// All of the machine's memory.
Bytes processor_memory();

/// Threads that kernels use from now on, in this process.
void set_kernel_threads(int threads);

}  // namespace stepcast
