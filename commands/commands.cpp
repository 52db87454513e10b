#include "commands/commands.hpp"

#include <fmt/format.h>

#include "report/plots/results_plots.hpp"

namespace stepcast {

void add_plot(Command app) {
  const Command command = app.add_subcommand("plot", "Draw the plots of a results folder again.");
  auto folder = std::make_shared<std::string>();
  command.add_option("folder", *folder, "Results folder that the command run wrote.")
      .required()
      .type_name("DIR");
  command.callback([=] {
    for (const std::string& complaint : draw_results(*folder)) fmt::print("{}\n", complaint);
    fmt::print("drawn: {}\n", *folder);
  });
}

}  // namespace stepcast
