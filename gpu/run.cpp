#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "gpu/commands.hpp"
#include "gpu/devices.hpp"
#include "kernels/gpu_capture.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "report/statistics.hpp"
#include "validate/rank_command.hpp"
#include "validate/run_options.hpp"

namespace stepcast {
namespace {

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

/// What each point's parameters know of held-out data, where the scenario has `learning`.
void print_learning(const std::filesystem::path& folder) {
  const auto file = folder / "learning.jsonl";
  if (!std::filesystem::exists(file)) return;
  std::map<std::string, std::vector<Row>> points;
  for (const Row& row : read_json_lines(read_file(file), file.string(), TornLine::drop).rows)
    points[row.text("point")].push_back(row);
  for (const auto& [point, rows] : points) {
    const Row &first = rows.front(), &last = rows.back();
    const auto accuracy = last.number("accuracy");
    fmt::print("{}: loss {:.3g} to {:.3g}{} after {} mini-batches of a worker in {:.3g} s\n", point,
               first.number("loss").value_or(NAN), last.number("loss").value_or(NAN),
               accuracy ? fmt::format(", accuracy {:.1f} %", 100 * *accuracy) : "",
               last.number("step").value_or(0), last.number("seconds").value_or(0));
  }
}

void run_on_gpus(const RealRunOptions& options) {
  const int first = DeviceOptions{options.gpus.words}.read().device;
  free_gpu_memory(first);  // no GPU: said before anything else is
  gpu_place(options.gpus.path, first, gpu_count(), 0, options.ranks);
  const Validation validation = read_validation(options.validation, options.ranks);
  const std::filesystem::path folder = std::filesystem::absolute(
      options.output.empty() ? "results/" + validation.scenario.name : options.output);
  check_writable(folder);
  for (const char* file : {"samples.jsonl", "learning.jsonl", "predicted.csv", "platform-host.yaml"})
    std::filesystem::remove(folder / file);

  RankJob job;
  job.cluster.ranks = options.ranks;
  job.folder = folder;
  job.arguments = rank_arguments(options.validation);
  job.heartbeat = options.heartbeat;
  job.before_stage = [](const std::function<void()>&) {};  // `stepcast validate` writes its forecast here
  job.commands = [&](const std::filesystem::path& control) {
    return gpu_rank_commands(std::filesystem::read_symlink("/proc/self/exe"), options.gpus, job, control);
  };
  run_ranks(job);
  print_steps(validation, folder);
  print_learning(folder);
  fmt::print("written: {}\n", folder.string());
}

}  // namespace

void add_gpu_run(CLI::App& app) {
  auto* command =
      app.add_subcommand("run", "Run a scenario's points for real on several ranks and time them");
  auto options = std::make_shared<RealRunOptions>();
  options->heartbeat = kGpuHeartbeat;
  add_real_run_options(*command, *options, "cuda:NUMBER, of rank 0; the others count up from it");
  command->footer("Example: stepcast-gpu run scenarios/validate/small.yaml --ranks 2");
  command->callback([options] { run_on_gpus(*options); });
}

}  // namespace stepcast
