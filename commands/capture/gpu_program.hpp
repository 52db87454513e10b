#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stepcast {

/// Path of stepcast-gpu, in the folder of this program. It is a separate program, so that the CUDA libraries
/// are loaded only when they are used.
/// @param device  value of --device, for the error message
/// @throws InputError if the program does not exist, with the reason and the command that builds it
std::filesystem::path gpu_program(const std::string& device);

/// Replaces this process by stepcast-gpu with these arguments. @throws InputError if it cannot be started
[[noreturn]] void run_gpu_program(const std::string& device, const std::vector<std::string>& arguments);

}  // namespace stepcast
