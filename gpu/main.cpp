#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "core/error.hpp"
#include "gpu/commands.hpp"
#include "gpu/outside_tolerance.hpp"

namespace {

enum ExitCode { done = 0, fault = 1, bad_input = 2, over_limit = 3, lost = 4, outside_tolerance = 5 };

int complain(const std::exception& error, ExitCode code) {
  fmt::print(stderr, "stepcast-gpu: {}\n", error.what());
  return code;
}

std::string usage_error(const CLI::App*, const CLI::Error& error) {
  return fmt::format("stepcast-gpu: {} (see --help)\n", error.what());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "stepcast-gpu times networks on this machine's GPUs, checks its forecasts of single-GPU steps, and "
      "trains "
      "on several.",
      "stepcast-gpu");
  app.set_version_flag("--version", "stepcast-gpu " STEPCAST_VERSION);
  app.require_subcommand(1);
  app.failure_message(usage_error);
  app.footer(
      "Exit codes: 0 done, 1 internal fault, 2 bad input or no GPU, 3 over a limit, 4 a rank or the GPU was "
      "lost, 5 "
      "outside a tolerance");
  for (const auto add : {stepcast::add_gpu_capture, stepcast::add_gpu_capture_all, stepcast::add_gpu_check,
                         stepcast::add_gpu_predict, stepcast::add_gpu_probe, stepcast::add_gpu_rank,
                         stepcast::add_gpu_run, stepcast::add_gpu_validate}) {
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
  } catch (const stepcast::RankLost& error) {
    return complain(error, lost);
  } catch (const stepcast::OutsideTolerance& error) {
    return complain(error, outside_tolerance);
  } catch (const std::exception& error) {
    return complain(error, fault);
  }
}
