#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "validate/gpu_ranks.hpp"

namespace CLI {
class App;
}

namespace stepcast {

/// stepcast-gpu, which lies beside this program: a program of its own, so that nobody loads the CUDA
/// libraries who does not use them.
/// @param device  as the user typed it
/// @throws InputError where there is none, with the reason and what to build
std::filesystem::path gpu_program(const std::string& device);

/// Becomes it, with these arguments. @throws InputError
[[noreturn]] void run_gpu_program(const std::string& device, const std::vector<std::string>& arguments);

/// What ranks on GPUs are asked for on the command line.
void add_gpu_rank_options(CLI::App& command, GpuRanks& gpus);

}  // namespace stepcast
