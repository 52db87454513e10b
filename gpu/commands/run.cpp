#include <fmt/format.h>

#include <map>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "core/os/process.hpp"
#include "gpu/capture/selection.hpp"
#include "gpu/commands/commands.hpp"
#include "gpu/ranks/gpu_rank.hpp"
#include "kernels/timing/capture.hpp"
#include "report/results/results.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/learning/evaluated_loss.hpp"
#include "runtime/runs/run_sample.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"
#include "validate/launch/launcher.hpp"
#include "validate/launch/real_run_options.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {
namespace {

/// The error's file is there already if the rank's programs failed (run_gpu_rank).
void run_and_report(const RankOptions& options) {
  try {
    run_gpu_rank(options);
  } catch (const std::exception& error) {
    write_rank_error(options, error);
    throw;
  }
}

}  // namespace

void add_gpu_rank(Command app) {
  const Command command = app.add_subcommand(
      "rank", "One rank of `run` or of `stepcast validate --device`. These commands start it, not users.");
  auto options = std::make_shared<RankOptions>();
  command.add_option("--rank", options->rank).required();
  command.add_option("--ranks", options->ranks).required();
  command.add_option("--store", options->store, "Folder through which the ranks find each other.").required();
  command.add_option("--folder", options->folder).required();
  command.add_option("--control", options->control).required();
  command.add_option("--stall-timeout", options->timeout, "Longest wait for other ranks [s].").show_default();
  add_gpu_options(command, options->gpus.options, "GPU of rank 0: cuda:NUMBER.");
  add_gpu_paths(command, options->gpus);
  command.add_option("--scenario", options->validation.scenario).required();
  command.add_option("--set", options->validation.settings).one_value();
  command.add_option("--repeats", options->validation.repeats);
  command.add_option("--point", options->validation.point, "The only point that is run. Default: all.");
  command.add_flag("--measure", options->measure_only, "Run no point: only measure traces and links.");
  command.callback([options] {
    options->validation.accept_disturbed = true;  // disturbances of a GPU are not measured
    set_rank_environment(options->gpus.path);
    run_and_report(*options);
  });
}

namespace {

/// Prints the median step of each point, in the scenario's order.
void print_steps(const Validation& validation, const std::filesystem::path& folder) {
  std::map<std::string, std::vector<double>> seconds;
  for (const RunSample& one : read_run_samples(folder / "samples.jsonl"))
    seconds[one.point].push_back(one.step_seconds);
  for (const std::size_t index : validation.points) {
    const std::string& name = validation.scenario.points[index].name;
    const auto found = seconds.find(name);
    if (found == seconds.end()) continue;
    fmt::print("{}: {:.4g} ms a step, median of {} runs\n", name, 1e3 * median_of(found->second),
               found->second.size());
  }
}

/// Prints each point's loss and accuracy on held-out data, if the scenario has `learning`.
void print_learning(const std::filesystem::path& folder) {
  const auto file = folder / "learning.jsonl";
  if (!std::filesystem::exists(file)) return;
  const Results learning = read_json_lines(read_file(file), file.string(), TornLine::drop);
  std::map<std::string, std::vector<EvaluatedLoss>> points;
  for (EvaluatedLoss& one : evaluations_of(learning, file.string()))
    points[one.point].push_back(std::move(one));
  for (const auto& [point, all] : points) {
    const EvaluatedLoss &first = all.front(), &last = all.back();
    fmt::print("{}: loss {:.3g} to {:.3g}{} after {} mini-batches of a worker in {:.3g} s\n", point,
               first.loss, last.loss,
               last.accuracy ? fmt::format(", accuracy {:.1f} %", 100 * *last.accuracy) : "", last.step,
               last.seconds);
  }
}

/// Adds the algorithms of a point's automatic all-reduces to the file that its ranks read before they run.
/// This program makes no forecast that would choose them.
/// @param all  the rows of the points before it
void write_all_reduces(const Validation& validation, std::size_t index, const std::filesystem::path& folder,
                       Results& all) {
  Library library;
  const Plan plan = measured_experiment(validation, index, folder, {}, library).plan;
  const std::string& point = validation.point(index).name;
  for (Row& row : all_reduce_rows(point, plan, choices_without_forecast(plan)))
    all.rows.push_back(std::move(row));
  write_atomically(all_reduce_file(folder), to_csv(all));
}

/// Removes what an earlier run left in the folder and the launches of this run would add to or use.
void remove_earlier_results(const Validation& validation, const std::filesystem::path& folder) {
  for (const char* file : {"samples.jsonl", "learning.jsonl", "predicted.csv"})
    std::filesystem::remove(folder / file);
  std::filesystem::remove(platform_file(folder));
  std::filesystem::remove(host_platform_file(folder));
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const NetworkVariant& variant = validation.variants[i];
    std::filesystem::remove(trace_file(folder, variant));
    std::filesystem::remove(shard_trace_file(folder, variant, validation.partitions[i]));
    std::filesystem::remove(compression_file(folder, variant.model));
  }
}

/// @return the names of the points whose ranks failed
std::vector<std::string> run_points(const RankJob& job, const Validation& validation,
                                    const ValidationOptions& options) {
  Results all_reduces{validation.scenario.name, {}};
  try {
    return run_points_apart(job, validation, options, [&](std::size_t index) {
      write_all_reduces(validation, index, job.folder, all_reduces);
    });
  } catch (const Interrupted&) {
    throw Interrupted(
        fmt::format("interrupted; the runs so far are in {}", (job.folder / "samples.jsonl").string()));
  }
}

void run_on_gpus(const RealRunOptions& options) {
  const int first = DeviceOptions{options.gpus.options}.gpu_options().device;
  require_gpu(first);  // reports a missing GPU before any other error, and makes no context on it
  gpu_place(options.gpus.path, first, gpu_count(), 0, options.ranks);
  const Validation validation = read_validation(options.validation, options.ranks,
                                                placeholder_platform(read_cluster("memory", options.ranks)));
  const std::filesystem::path folder =
      std::filesystem::absolute(results_folder(options.output, validation.scenario.name));
  check_writable(folder);
  const FolderLock lock(folder);
  remove_earlier_results(validation, folder);
  RankJob job;
  job.cluster.ranks = options.ranks;
  job.folder = folder;
  job.heartbeat = options.heartbeat;
  const SignalGuard signals;
  job.interrupted = SignalGuard::interrupted;
  job.commands = [&options](const RankJob& own, const std::filesystem::path& control) {
    return gpu_rank_commands(std::filesystem::read_symlink("/proc/self/exe"), options.gpus, own, control);
  };
  const std::vector<std::string> failed = run_points(job, validation, options.validation);
  if (failed.size() < validation.points.size()) {
    print_steps(validation, folder);
    print_learning(folder);
    fmt::print("written: {}\n", folder.string());
  }
  if (!failed.empty()) throw points_lost(failed, validation.points.size());
}

}  // namespace

void add_gpu_run(Command app) {
  const Command command =
      app.add_subcommand("run", "Run a scenario's points for real on several ranks and time them.");
  auto options = std::make_shared<RealRunOptions>();
  add_real_run_options(command, *options,
                       "GPU of rank 0: cuda:NUMBER. Further ranks use the following numbers.");
  command.footer("Example: stepcast-gpu run scenarios/validate/small.yaml --ranks 2");
  command.callback([options] { run_on_gpus(*options); });
}

}  // namespace stepcast
