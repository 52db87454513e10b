#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "commands/commands.hpp"
#include "core/exit_codes.hpp"
#include "core/nearest.hpp"
#include "core/utf8.hpp"

using stepcast::ExitCode;

namespace {

/// One line about an invalid command line. CLI11's own message does not name the unknown word.
std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* command = app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const auto rest = command->remaining();
  const bool no_command = command->get_require_subcommand_min() > 0 && !rest.empty();
  std::string text = error.what();
  if (no_command) {
    std::vector<std::string> names;
    for (const CLI::App* one : command->get_subcommands({})) names.push_back(one->get_name());
    const std::string nearest = stepcast::nearest_word(rest.front(), names);
    text = fmt::format("there is no command \"{}\"", stepcast::printable(rest.front()));
    if (!nearest.empty()) text += fmt::format("; did you mean \"{}\"?", nearest);
  }
  return fmt::format("stepcast: {} (see --help)\n", text);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("stepcast forecasts how a training strategy scales on a cluster, before anyone pays for it.",
               "stepcast");
  app.set_version_flag("--version", std::string("stepcast ") + stepcast::kVersion);
  app.require_subcommand(1);
  app.failure_message(usage_error);
  app.footer(
      "Start with: stepcast run scenarios/quickstart.yaml\n"
      "Exit codes: 0 done, 1 internal error, 2 invalid input, 3 over a limit, 4 interrupted or a rank "
      "failed");
  for (const auto add : {stepcast::add_run, stepcast::add_learn, stepcast::add_search, stepcast::add_show,
                         stepcast::add_capture, stepcast::add_capture_compression, stepcast::add_calibrate,
                         stepcast::add_validate, stepcast::add_derive, stepcast::add_import,
                         stepcast::add_compare, stepcast::add_plot}) {
    add(app);
  }
  try {
    app.parse(argc, argv);
    return static_cast<int>(ExitCode::done);
  } catch (const CLI::ParseError& error) {
    return static_cast<int>(app.exit(error) == 0 ? ExitCode::done : ExitCode::bad_input);
  } catch (const std::exception& error) {
    return stepcast::report_failure("stepcast", error);
  }
}
