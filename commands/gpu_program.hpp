#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stepcast {

/// stepcast-gpu, which lies beside this program: a program of its own, so that nobody loads the CUDA
/// libraries who does not use them.
/// @param device  as the user typed it
/// @throws InputError where there is none, with the reason and what to build
std::filesystem::path gpu_program(const std::string& device);

/// Becomes it, with these arguments. @throws InputError
[[noreturn]] void run_gpu_program(const std::string& device, const std::vector<std::string>& arguments);

}  // namespace stepcast
