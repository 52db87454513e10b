#include "gpu/commands/commands.hpp"

int main(int argc, char** argv) {
  stepcast::CommandLine line("stepcast-gpu", STEPCAST_VERSION,
                             "stepcast-gpu times networks on this machine's GPUs, checks its forecasts of "
                             "single-GPU steps, and trains on several GPUs.");
  const stepcast::Command command = line.command();
  command.require_subcommand();
  command.footer(
      "Exit codes: 0 done, 1 internal error, 2 invalid input or no GPU, 3 over a limit, 4 interrupted, or a "
      "rank or the GPU failed, 5 outside a tolerance");
  for (const auto add : {stepcast::add_gpu_capture, stepcast::add_gpu_capture_all, stepcast::add_gpu_check,
                         stepcast::add_gpu_rank, stepcast::add_gpu_run, stepcast::add_gpu_validate}) {
    add(command);
  }
  return line.run(argc, argv);
}
