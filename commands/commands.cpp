#include "commands/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "core/error.hpp"
#include "core/os/folders.hpp"
#include "report/plots/results_plots.hpp"

namespace stepcast {

std::string version_text() {
#ifdef __clang__
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
  return fmt::format("{}\ncompiler: {}\nlibraries: {}", kVersion, compiler, STEPCAST_LIBRARIES);
}

void add_plot(Command app) {
  const Command command = app.add_subcommand("plot", "Draw the plots of a results folder again.");
  auto folder = std::make_shared<std::string>();
  command.add_option("folder", *folder, "Results folder that the command run wrote.")
      .required()
      .type_name("DIR");
  command.callback([=] {
    std::optional<FolderLock> lock;
    if (std::filesystem::is_directory(*folder)) lock.emplace(*folder);
    const DrawnPlots drawn = draw_results(*folder);
    for (const std::string& complaint : drawn.complaints) fmt::print("{}\n", complaint);
    drawn.missing.report(*folder, "free some space and draw again");
    fmt::print("drawn: {}\n", *folder);
  });
  command.footer("Example: stepcast plot results/quickstart");
}

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
