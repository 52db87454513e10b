#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "commands/commands.hpp"
#include "commands/scenario_options.hpp"
#include "commands/validate/freeze_forecast.hpp"
#include "commands/validate/validation_report.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "core/os/process.hpp"
#include "kernels/timing/host_info.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "validate/launch/launcher.hpp"
#include "validate/launch/real_run_options.hpp"

namespace stepcast {
namespace {

struct ValidateOptions : RealRunOptions {
  std::string cluster = "memory", transport = "own";
  std::string measured_in;  ///< folder of an earlier validation; empty: this one measures
  RemoteOptions remote;
  LearningLimits limits{0, {}, {}};  ///< of the forecast's trainings; its simulations use these processes
  bool dry_run = false;
};

/// Seconds since `since`, rounded; sets `since` to the present time.
long lap(std::chrono::steady_clock::time_point& since) {
  const auto now = std::chrono::steady_clock::now();
  return std::lround(std::chrono::duration<double>(now - std::exchange(since, now)).count());
}

void check_cores(const ValidateOptions& options) {
  if (options.remote.given()) return;  // each host's are checked when its ranks are there
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (options.validation.share_cores && options.ranks % cores != 0)
    throw InputError(
        fmt::format("--ranks: expected a multiple of {} with --share-cores, so that all ranks of this "
                    "machine get equal shares, got {}",
                    cores, options.ranks));
  if (options.validation.sleep || options.validation.share_cores || options.ranks <= cores) return;
  throw InputError(fmt::format(
      "--ranks: expected at most {}, the number of cores, got {}; with --sleep there can be more ranks, "
      "because they wait for the times of their traces instead of computing, and with --share-cores several "
      "compute on a core in turns",
      cores, options.ranks));
}

/// A rank that shares a core runs and pauses by turns, so that wall and CPU time always differ.
void check_share_cores(ValidateOptions& options, const Cluster& cluster) {
  if (!options.validation.share_cores) return;
  if (cluster.kind != Cluster::Kind::memory || options.validation.sleep ||
      options.gpus.options.device != "cpu")
    throw InputError("--share-cores: only valid for ranks that compute on the cores of this machine");
  options.validation.accept_disturbed = true;
}

void check_gpu_options(const ValidateOptions& options) {
  if (options.cluster != "memory" || options.remote.given() || options.transport != "own" ||
      options.validation.sleep || options.validation.accept_disturbed) {
    throw InputError(
        fmt::format("--device {}: --cluster, --transport, --sleep and --accept-disturbed are only valid with "
                    "--device cpu",
                    options.gpus.options.device));
  }
}

/// Removes the files of an earlier validation in the folder that this one would read or continue, or might
/// not write again.
void remove_earlier(const std::filesystem::path& folder) {
  for (const char* file :
       {"samples.jsonl", "links.jsonl", "learning.jsonl", "platform.yaml", "platform-host.yaml",
        "predicted-all-reduces.csv", "predicted-learning.csv", "time-to-loss.csv"})
    std::filesystem::remove(folder / file);
  for (std::size_t forecast = 1; std::filesystem::remove_all(forecast_folder(folder, forecast)) > 0;
       ++forecast) {
  }
}

/// Overwrites the line of progress on a terminal.
void show_progress(const std::string& doing, std::string& last) {
  if (doing == last || doing.empty() || isatty(2) == 0) return;
  fmt::print(stderr, "\rvalidate: {:90.90}", last = doing);
}

/// Makes the forecast of all points and freezes it. @param meanwhile  called several times a second
using MakeForecast = std::function<void(const std::function<void()>& meanwhile)>;

/// All points run in one launch of the ranks, which wait while each forecast is made.
std::vector<std::string> run_on_cores(RankJob job, const MakeForecast& make_forecast) {
  job.before_stage = make_forecast;
  run_ranks(job);
  return {};
}

/// Ranks on GPUs measure in one launch. After the forecast each point runs in ranks of its own, which use the
/// links and traces that the forecast was made from.
/// @return the names of the points whose ranks failed
std::vector<std::string> run_on_gpus(const RankJob& job, const Validation& validation,
                                     const ValidationOptions& options, const MakeForecast& make_forecast) {
  RankJob measuring = job;
  measuring.arguments.emplace_back("--measure");
  run_ranks(measuring);
  make_forecast(SignalGuard::stop_if_interrupted);
  return run_points_apart(job, validation, options, {});
}

/// Calls `run`, which returns the points that failed. If all ranks failed or the user interrupted them, the
/// message says what has been measured.
std::vector<std::string> run_to_end(const std::filesystem::path& folder,
                                    const std::function<std::vector<std::string>()>& run) {
  try {
    std::vector<std::string> failed = run();
    if (isatty(2) != 0) fmt::print(stderr, "\r{:100}\r", "");
    return failed;
  } catch (const RankLost& lost) {
    throw RankLost(fmt::format("{}; {}", lost.what(), measured_so_far(folder)));
  } catch (const Interrupted&) {
    throw Interrupted(fmt::format("interrupted; {}; a new validation in that folder starts from scratch",
                                  measured_so_far(folder)));
  }
}

Validation checked_validation(const ValidateOptions& options, const Cluster& cluster, bool on_gpus) {
  Validation validation = read_validation(options.validation, options.ranks, placeholder_platform(cluster));
  if (on_gpus && any_plan(validation, &Plan::load_data))
    throw InputError("data: expected ranks on CPUs, because ranks on GPUs do not load input yet");
  return validation;
}

/// Limits of the forecast's trainings; empty: it has none.
std::optional<LearningLimits> training_limits(const ValidateOptions& options, bool on_gpus) {
  if (on_gpus || options.validation.sleep) return std::nullopt;
  return options.limits;
}

/// Makes the ranks those of stepcast-rank, or of the program `gpu`.
void set_program(const ValidateOptions& options, const std::filesystem::path& gpu, RankJob& job) {
  job.arguments = rank_arguments(options.validation);
  job.interrupted = SignalGuard::interrupted;
  job.heartbeat = options.heartbeat;
  job.share_cores = options.validation.share_cores;
  if (gpu.empty()) {
    job.arguments.insert(job.arguments.begin(), "validate");
    return;
  }
  job.commands = [gpu, &options](const RankJob& own, const std::filesystem::path& control) {
    return gpu_rank_commands(gpu, options.gpus, own, control);
  };
}

/// @throws RankLost if the rank did not reach its end
void run_as_agent(const AgentOptions& agent) {
  if (run_rank_agent(agent) != 0) throw RankLost(fmt::format("rank {} did not reach its end", agent.rank));
}

std::optional<RemoteRanks> checked_remote_ranks(ValidateOptions& options) {
  options.remote.transport = options.transport;
  std::optional<RemoteRanks> remote = remote_ranks(options.remote, options);
  if (remote && options.cluster != "memory")
    throw InputError(
        "--cluster: cannot be given with --hosts or --bind; the machines' own network connects the ranks");
  return remote;
}

std::string counted(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Prints what the command would do, for --dry-run. The time is not known before layer times are measured.
void print_size(const Validation& validation, const ValidateOptions& options, const Cluster& cluster) {
  const std::vector<Experiment>& points = validation.unmeasured;
  const std::size_t forecasts = options.validation.forecasts,
                    repeats = forecasts * options.validation.repeats;
  std::size_t steps = 0, trainings = 0;
  for (const Experiment& point : points) {
    steps += repeats * point.steps;
    if (point.learning) trainings += point.learning->seeds;
  }
  fmt::print("{}: {}, {} with {} in all on {} ({}){}\n", validation.scenario.name,
             counted(points.size(), "point"), counted(points.size() * repeats, "real run"),
             counted(steps, "step"), counted(options.ranks, "rank"), cluster.label(),
             trainings == 0 ? "" : ", then " + counted(trainings, "training"));
  fmt::print("{}: {}\n", options.measured_in.empty() ? "measured first" : "from " + options.measured_in,
             fmt::join(measured_files(validation), ", "));
}

/// The frozen forecasts of all points, and the names of the points whose ranks failed.
struct Outcome {
  std::vector<RealForecast> forecasts = {};
  std::vector<std::string> failed = {};
};

/// Measures, forecasts and runs all points, once for each forecast. @param job  without its folder
Outcome measure_forecast_run(const ValidateOptions& options, const Validation& validation, RankJob job,
                             const std::filesystem::path& folder) {
  remove_earlier(folder);
  Outcome outcome;
  job.folder = folder;
  std::string last;
  job.progress = [&last](const std::string& doing) { show_progress(doing, last); };
  auto since = std::chrono::steady_clock::now();
  long measuring = 0, forecasting = 0, running = 0;
  const MakeForecast forecast = [&](const std::function<void()>& meanwhile) {
    (outcome.forecasts.empty() ? measuring : running) += lap(since);
    if (!options.measured_in.empty()) use_earlier(validation, options.measured_in, folder);
    outcome.forecasts.push_back(predict_real(validation, options.validation, job.cluster, folder,
                                             {options.limits.processes, meanwhile}));
    freeze(outcome.forecasts.back(), folder);
    if (options.validation.forecasts > 1)
      keep_forecast(measured_files(validation), outcome.forecasts.size(), folder);
    forecasting += lap(since);
  };
  outcome.failed = run_to_end(folder, [&] {
    return job.commands ? run_on_gpus(job, validation, options.validation, forecast)
                        : run_on_cores(job, forecast);
  });
  fmt::print("time: {} s to measure links and traces, {} s to forecast, {} s to run{}\n", measuring,
             forecasting, running + lap(since),
             outcome.forecasts.size() > 1 ? " and to measure the traces of later forecasts" : "");
  return outcome;
}

/// Prints the comparison of the runs with the mean forecast.
void report(const ValidateOptions& options, const Outcome& outcome, const Cluster& cluster,
            const std::filesystem::path& folder) {
  const StepStatistic statistic = step_statistic(options.validation);
  RealForecast mean = outcome.forecasts.front();
  if (outcome.forecasts.size() > 1) {
    mean = join_forecasts(outcome.forecasts, folder);
    for (const std::string& line : forecast_lines(outcome.forecasts, statistic, folder))
      fmt::print("{}\n", line);
  }
  if (options.validation.accept_disturbed)
    fmt::print("disturbed runs count as measurements (--accept-disturbed)\n");
  report_validation(mean, cluster.label(), options.ranks, statistic, folder);
}

/// Measures, forecasts and runs all points, and prints the comparison.
void run_and_compare(const ValidateOptions& options, const Validation& validation, const RankJob& job) {
  const std::filesystem::path folder =
      std::filesystem::absolute(results_folder(options.output, validation.scenario.name));
  check_writable(folder);
  const FolderLock lock(folder);
  const SignalGuard signals;
  const ClusterGuard up(job.cluster, folder);
  std::optional<AwakeCores> awake;  // only for sleeping ranks: computing ranks keep their cores awake
  if (options.validation.sleep) awake.emplace();
  const Outcome outcome = measure_forecast_run(options, validation, job, folder);
  if (outcome.failed.size() < validation.points.size()) report(options, outcome, job.cluster, folder);
  if (!outcome.failed.empty()) throw points_lost(outcome.failed, validation.points.size());
}

/// Ranks on GPUs run each point in a launch of its own, ranks that sleep take the times of the first traces,
/// and trainings have no mean over forecasts.
void check_forecasts(const ValidateOptions& options, bool on_gpus, const std::vector<Experiment>& points) {
  const int forecasts = options.validation.forecasts;
  if (forecasts == 1) return;
  const auto refuse = [forecasts](const std::string& where) {
    throw InputError(fmt::format("--forecasts: expected 1 {}, got {}", where, forecasts));
  };
  if (on_gpus) refuse("on GPUs");
  if (options.validation.sleep) refuse("with --sleep");
  const auto learns = [](const Experiment& point) { return point.learning.has_value(); };
  if (std::ranges::any_of(points, learns)) refuse("for a scenario with learning");
}

void validate(ValidateOptions& options) {
  if (const auto agent = agent_of_job(options.remote)) {
    if (!options.dry_run) run_as_agent(*agent);
    return;
  }
  if (is_standard_input(options.validation.scenario))
    throw InputError(
        "standard input (-) is not valid with validate, whose ranks read the scenario again; give a file");
  RankJob job;
  job.remote = checked_remote_ranks(options);
  job.cluster = read_cluster(job.remote ? "hosts" : options.cluster, options.ranks, options.transport);
  const bool on_gpus = options.gpus.options.device != "cpu";
  const std::filesystem::path gpu = on_gpus ? gpu_program(options.gpus.options.device) : "";
  check_share_cores(options, job.cluster);
  on_gpus ? check_gpu_options(options) : check_cores(options);
  options.validation.measured = !options.measured_in.empty() && options.validation.forecasts == 1;
  set_program(options, gpu, job);
  const Validation validation = checked_validation(options, job.cluster, on_gpus);
  check_points(validation, options.validation, job.cluster, training_limits(options, on_gpus));
  check_forecasts(options, on_gpus, validation.unmeasured);
  if (!options.measured_in.empty()) check_earlier(validation, options.measured_in);
  check_launch(job);
  if (options.dry_run) return print_size(validation, options, job.cluster);
  run_and_compare(options, validation, job);
}

/// Adds the options that say what is measured how often, and which measurements count.
void add_measuring_options(Command command, ValidateOptions& options) {
  command.add_flag("--accept-disturbed", options.validation.accept_disturbed,
                   "Also count runs that other processes on the machine disturbed.");
  command
      .add_option(
          "--measured-in", options.measured_in,
          "Folder of an earlier validation, for example with fewer ranks. The forecast uses the links and "
          "traces that it measured.")
      .type_name("DIR");
  command
      .add_option(
          "--forecasts", options.validation.forecasts,
          "Number of times that the ranks capture traces, a forecast is frozen, and the points are run. The "
          "mean forecast is compared with the mean of all runs. Several forecasts help on a machine whose "
          "speed changes within minutes.")
      .range(1, 100)
      .show_default();
}

}  // namespace

void add_validate(Command app) {
  const Command command = app.add_subcommand(
      "validate", "Forecast a scenario, then run it on real ranks and compare the step times.");
  auto options = std::make_shared<ValidateOptions>();
  options->gpus.options.device = "cpu";
  const Option ranks =
      add_real_run_options(command, *options, "Device: cpu, or cuda:NUMBER if stepcast-gpu was built.");
  command
      .add_option("--cluster", options->cluster,
                  "Links between the ranks: memory, loopback, or "
                  "netcluster:RATE[,packet=BYTES][,racks=2,uplink=RATE] (emulated network, needs root).")
      .show_default();
  add_remote_options(command, options->remote);
  command.add_option("--transport", options->transport, kTransportHelp)
      .one_of(transport_names())
      .show_default();
  command.add_flag(
      "--sleep", options->validation.sleep,
      "Let ranks sleep for the times of their traces instead of computing. Then there can be more "
      "ranks than cores.");
  command.add_flag("--share-cores", options->validation.share_cores,
                   "Let several ranks compute on each core, in turns of 0.2 ms, so that there can be more "
                   "ranks than cores. "
                   "Needs root. Disturbed runs then count.");
  add_measuring_options(command, *options);
  add_jobs(command, options->limits.processes, "simulations and trainings of the forecast");
  add_memory_limit(command, options->limits.memory, "With learning.target_loss: refuse to start");
  add_time_limit(command, options->limits.time,
                 "With learning.target_loss: refuse to start if all trainings of the forecast");
  command.add_flag("--dry-run", options->dry_run,
                   "Check whether the points can be run for real, and print what would be measured and run.");
  command.footer("Example: stepcast validate scenarios/validate/small.yaml --ranks 2");
  command.callback(
      [options, ranks] {
        options->remote.ranks_given = ranks.given();
        options->limits.processes = jobs_or_cores(options->limits.processes);
        validate(*options);
      },
      Command::Json::yes);
}

}  // namespace stepcast
