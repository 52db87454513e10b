#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>

#include "core/error.hpp"
#include "gpu/commands/commands.hpp"

using stepcast::ExitCode;

namespace {

std::string usage_error(const CLI::App*, const CLI::Error& error) {
  return fmt::format("stepcast-gpu: {} (see --help)\n", error.what());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "stepcast-gpu times networks on this machine's GPUs, checks its forecasts of single-GPU steps, and "
      "trains on "
      "several GPUs.",
      "stepcast-gpu");
  app.set_version_flag("--version", "stepcast-gpu " STEPCAST_VERSION);
  app.require_subcommand(1);
  app.failure_message(usage_error);
  app.footer(
      "Exit codes: 0 done, 1 internal error, 2 invalid input or no GPU, 3 over a limit, 4 interrupted, or a "
      "rank or the GPU "
      "failed, 5 outside a tolerance");
  for (const auto add : {stepcast::add_gpu_capture, stepcast::add_gpu_capture_all, stepcast::add_gpu_check,
                         stepcast::add_gpu_predict, stepcast::add_gpu_probe, stepcast::add_gpu_rank,
                         stepcast::add_gpu_run, stepcast::add_gpu_validate}) {
    add(app);
  }
  try {
    app.parse(argc, argv);
    return static_cast<int>(ExitCode::done);
  } catch (const CLI::ParseError& error) {
    return static_cast<int>(app.exit(error) == 0 ? ExitCode::done : ExitCode::bad_input);
  } catch (const std::exception& error) {
    return stepcast::report_failure("stepcast-gpu", error);
  }
}
