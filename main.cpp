#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "commands/commands.hpp"
#include "commands/version.hpp"
#include "core/error.hpp"

namespace {

enum ExitCode { done = 0, fault = 1, bad_input = 2, over_limit = 3, partial = 4 };

int complain(const std::exception& error, ExitCode code) {
  fmt::print(stderr, "stepcast: {}\n", error.what());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("stepcast forecasts how a way of training scales on a cluster, before anyone pays for it.",
               "stepcast");
  app.set_version_flag("--version", std::string("stepcast ") + stepcast::kVersion);
  app.require_subcommand(1);
  app.footer(
      "Start with: stepcast run scenarios/quickstart.yaml\n"
      "Exit codes: 0 done, 1 internal fault, 2 bad input, 3 over a limit, 4 interrupted");
  for (const auto add : {stepcast::add_run, stepcast::add_show, stepcast::add_capture, stepcast::add_derive,
                         stepcast::add_compare, stepcast::add_plot}) {
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
    fmt::print(stderr, "\nstepcast: interrupted; go on with --resume\n");
    return partial;
  } catch (const std::exception& error) {
    return complain(error, fault);
  }
}
