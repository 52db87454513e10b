#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// Becomes stepcast-gpu, which lies beside this program, with these arguments. A program of its own, so that
/// nobody loads the CUDA libraries who does not use them.
/// @throws InputError where this build has none, with the reason
[[noreturn]] void run_gpu_program(const std::string& device, const std::vector<std::string>& arguments);

}  // namespace stepcast
