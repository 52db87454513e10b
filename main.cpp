#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "commands/commands.hpp"
#include "commands/version.hpp"
#include "core/error.hpp"
#include "core/nearest.hpp"
#include "core/utf8.hpp"

namespace {

enum ExitCode { done = 0, fault = 1, bad_input = 2, over_limit = 3, partial = 4 };

int complain(const std::exception& error, ExitCode code) {
  fmt::print(stderr, "stepcast: {}\n", error.what());
  return code;
}

/// One line for a command line that cannot be; CLI11 alone would not say which word it does not know.
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
  CLI::App app("stepcast forecasts how a way of training scales on a cluster, before anyone pays for it.",
               "stepcast");
  app.set_version_flag("--version", std::string("stepcast ") + stepcast::kVersion);
  app.require_subcommand(1);
  app.failure_message(usage_error);
  app.footer(
      "Start with: stepcast run scenarios/quickstart.yaml\n"
      "Exit codes: 0 done, 1 internal fault, 2 bad input, 3 over a limit, 4 interrupted or a rank lost");
  for (const auto add :
       {stepcast::add_run, stepcast::add_learn, stepcast::add_search, stepcast::add_show,
        stepcast::add_capture, stepcast::add_capture_compression, stepcast::add_calibrate,
        stepcast::add_validate, stepcast::add_derive, stepcast::add_compare, stepcast::add_plot}) {
    add(app);
  }
  try {
    app.parse(argc, argv);
    return done;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? done : bad_input;
  } catch (const stepcast::InputError& error) {
    return complain(error, bad_input);
  } catch (const stepcast::LimitError& error) {
    return complain(error, over_limit);
  } catch (const stepcast::Interrupted& error) {
    fmt::print(stderr, "\n");  // a line of progress may stand there
    return complain(error, partial);
  } catch (const stepcast::RankLost& error) {
    return complain(error, partial);
  } catch (const std::exception& error) {
    return complain(error, fault);
  }
}
