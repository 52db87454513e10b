#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "core/error.hpp"
#include "gpu/commands.hpp"
#include "gpu/devices.hpp"
#include "kernels/gpu_capture.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "report/statistics.hpp"
#include "validate/gpu_ranks.hpp"
#include "validate/rank_command.hpp"
#include "validate/validation.hpp"

namespace stepcast {
namespace {

struct Options {
  ValidationOptions validation;
  int ranks = 2;
  double heartbeat = 120;  // choosing algorithms for a large network takes a while
  std::string output, path = "auto", device_file;
  DeviceOptions device;
};

/// Median step of each point, in the scenario's order.
void print_steps(const Validation& validation, const std::filesystem::path& folder) {
  const auto file = folder / "samples.jsonl";
  std::map<std::string, std::vector<double>> seconds;
  for (const Row& row : read_json_lines(read_file(file), file.string(), TornLine::drop).rows)
    seconds[row.text("point")].push_back(row.number("step_seconds").value_or(0));
  for (const std::size_t index : validation.points) {
    const std::string& name = validation.scenario.points[index].name;
    const auto found = seconds.find(name);
    if (found == seconds.end()) continue;
    fmt::print("{}: {:.4g} ms a step, median of {} runs\n", name, 1e3 * median_of(found->second),
               found->second.size());
  }
}

void run_on_gpus(const Options& options) {
  const int first = options.device.read().device;
  free_gpu_memory(first);  // no GPU: said before anything else is
  gpu_place(options.path, first, gpu_count(), 0, options.ranks);
  const Validation validation = read_validation(options.validation, options.ranks);
  const std::filesystem::path folder = std::filesystem::absolute(
      options.output.empty() ? "results/" + validation.scenario.name : options.output);
  check_writable(folder);
  for (const char* file : {"samples.jsonl", "predicted.csv"}) std::filesystem::remove(folder / file);

  RankJob job;
  job.cluster.ranks = options.ranks;
  job.folder = folder;
  job.arguments = rank_arguments(options.validation);
  job.heartbeat = options.heartbeat;
  job.before_stage = [](const std::function<void()>&) {};  // `stepcast validate` writes its forecast here
  job.commands = [&](const std::filesystem::path& control) {
    const GpuRanks gpus{options.device.device, options.device.precision,
                        options.device.layout, options.device.workspace_mib,
                        options.path,          options.device_file};
    return gpu_rank_commands(std::filesystem::read_symlink("/proc/self/exe"), gpus, job, control);
  };
  run_ranks(job);
  print_steps(validation, folder);
  fmt::print("written: {}\n", folder.string());
}

}  // namespace

void add_gpu_run(CLI::App& app) {
  auto* command =
      app.add_subcommand("run", "Run a scenario's points for real on several ranks and time them");
  auto options = std::make_shared<Options>();
  command->add_option("scenario", options->validation.scenario, "scenario file")
      ->required()
      ->type_name("SCENARIO.yaml");
  command->add_option("--ranks", options->ranks, "ranks to start, servers included")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  command
      ->add_option("--path", options->path,
                   "of collectives: nccl, host, or auto: nccl where each rank has a GPU of its own")
      ->check(CLI::IsMember({"auto", "nccl", "host"}))
      ->capture_default_str();
  command->add_option("--device-file", options->device_file,
                      "what models/devices says of the GPU (default: by its name)");
  add_device_options(*command, options->device);
  command->add_option("--repeats", options->validation.repeats, "runs of each point, in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--set", options->validation.settings, "replace a value of the scenario")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--heartbeat", options->heartbeat,
                   "seconds without a sign of life after which a rank hangs")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "folder (default results/SCENARIO-NAME)")
      ->type_name("DIR");
  command->footer("Example: stepcast-gpu run scenarios/validate/small.yaml --ranks 2");
  command->callback([options] { run_on_gpus(*options); });
}

}  // namespace stepcast
