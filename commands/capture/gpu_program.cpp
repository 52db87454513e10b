#include "commands/capture/gpu_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace stepcast {

std::filesystem::path gpu_program(const std::string& device) {
  const std::string missing = STEPCAST_GPU_MISSING;
  if (!missing.empty()) {
    throw InputError(fmt::format("--device {}: this build has no GPU part: {}", device, missing));
  }
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "stepcast-gpu";
  if (access(program.c_str(), X_OK) == 0) return program;
  throw InputError(
      fmt::format("--device {}: {} does not exist; build it: cmake --build {} --target stepcast-gpu", device,
                  program.string(), program.parent_path().string()));
}

void run_gpu_program(const std::string& device, const std::vector<std::string>& arguments) {
  const std::filesystem::path program = gpu_program(device);
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  throw InputError(
      fmt::format("--device {}: cannot start {}: {}", device, program.string(), std::strerror(errno)));
}

}  // namespace stepcast
