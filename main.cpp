#include "commands/commands.hpp"

int main(int argc, char** argv) {
  stepcast::CommandLine line(
      "stepcast", stepcast::version_text(),
      "stepcast forecasts how a training strategy scales on a cluster, before anyone pays for it.");
  const stepcast::Command command = line.command();
  command.require_subcommand();
  command.footer(
      "Start with: stepcast run scenarios/quickstart.yaml\n"
      "Exit codes: 0 done, 1 internal error, 2 invalid input, 3 over a limit, 4 interrupted, or a point or "
      "a rank failed");
  for (const auto add : {stepcast::add_run,
                         stepcast::add_merge,
                         stepcast::add_learn,
                         stepcast::add_search,
                         stepcast::add_show,
                         stepcast::add_capture,
                         stepcast::add_capture_compression,
                         stepcast::add_calibrate,
                         stepcast::add_validate,
                         stepcast::add_derive,
                         stepcast::add_import,
                         stepcast::add_import_platform,
                         stepcast::add_export,
                         stepcast::add_compare,
                         stepcast::add_plot,
                         stepcast::add_collectives,
                         stepcast::add_schema,
                         stepcast::add_check,
                         stepcast::add_init,
                         stepcast::add_completion}) {
    add(command);
  }
  return line.run(argc, argv);
}
