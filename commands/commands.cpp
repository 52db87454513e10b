#include "commands/commands.hpp"

#include <fmt/format.h>

#include <optional>

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

}  // namespace stepcast
