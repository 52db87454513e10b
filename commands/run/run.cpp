#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>

#include "commands/collectives/measured_network.hpp"
#include "commands/commands.hpp"
#include "commands/run/finish.hpp"
#include "commands/run/shards.hpp"
#include "commands/run/timeline.hpp"
#include "commands/scenario_options.hpp"
#include "core/cli/command_line.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "core/os/process.hpp"
#include "core/text.hpp"
#include "forecast/default_ranges.hpp"
#include "forecast/forecast.hpp"
#include "forecast/measured/measurements.hpp"
#include "forecast/resource_limits.hpp"
#include "report/results/published.hpp"
#include "report/text/display_text.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario_documents.hpp"

namespace stepcast {
namespace {

/// The points of this shard.
std::vector<std::size_t> chosen_points(const Scenario& scenario, const RunOptions& options) {
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) {
    if (static_cast<int>(i % options.shards) == options.shard) points.push_back(i);
  }
  if (points.empty())
    throw InputError(fmt::format("--shard: expected i below {}, the number of points, got {}",
                                 scenario.points.size(), options.shard_text));
  return points;
}

/// What --resume does not simulate again.
std::string kept_in(const std::filesystem::path& journal) {
  return fmt::format("finished simulations are kept in {}", journal.string());
}

/// Reads all scenarios before the first of them is run. Result folders have the names of the scenarios, so
/// the names must differ.
std::vector<Scenario> read_scenarios(const RunOptions& options, const MeasuredFiles& measured) {
  const std::vector<Assignment> settings = parse_assignments(options.settings);
  std::vector<Scenario> scenarios;
  std::map<std::string, std::string> files;  // by name
  for (const std::string& file : options.scenarios) {
    if (is_standard_input(file) && (options.slurm > 0 || !options.shard_text.empty()))
      throw InputError(
          "standard input (-) is not valid with --shard or --slurm, which read the scenario again; give a "
          "file");
    scenarios.push_back(read_scenario(file, settings));
    Scenario& read = scenarios.back();
    for (const MeasuredRuns& runs : measured.runs) {
      const auto own = measurements_of(runs, read);
      read.measurements.insert(read.measurements.end(), own.begin(), own.end());
      if (const std::string note = unused_columns_note(runs, read); !note.empty()) fmt::print("{}\n", note);
    }
    Library library;
    read = with_measured_points(std::move(read), library);
    const auto [other, is_new] = files.emplace(scenarios.back().name, file);
    if (!is_new)
      throw InputError(
          fmt::format("{}: name: expected a name that no other scenario has, but {} also has the "
                      "name {}; rename one of them",
                      file, other->second, other->first));
  }
  return scenarios;
}

/// A scenario that may be simulated: its points were built and the limits of the run were checked.
struct CheckedRun {
  std::vector<std::size_t> points;  ///< all points that this command simulates
  CheckedPoints checked;
  PreparedRun prepared;
  RunSize size;

  /// The points whose experiments could be built.
  std::vector<std::size_t> sound_points() const {
    std::vector<std::size_t> sound = points;
    std::erase_if(sound, [this](std::size_t point) { return checked.failed.contains(point); });
    return sound;
  }

  Seconds estimated_work(Library& library) const {
    return estimated_time(prepared.scenario, sound_points(), library, prepared.draws, size.simulations);
  }
};

CheckedRun checked_run(const Scenario& given, const RunOptions& options, Library& library) {
  const bool part = !options.shard_text.empty();
  CheckedRun run;
  run.points = chosen_points(given, options);
  check_timeline(given, options, library);
  run.checked = checked_points(given, run.points, library, part);
  run.prepared = prepared_run(given, part ? largest_experiment(given, library) : run.checked.largest,
                              options.draws, library);
  const int extra = options.results_only ? 0 : extra_simulations(run.prepared.scenario);
  run.size = run_size(run.checked.largest, run.points.size(), run.prepared.draws + extra);
  check_limits(run.size, options);
  if (run.checked.failed.size() < run.points.size()) check_time(run.checked.largest, run.size, options);
  return run;
}

/// Says before a run how long it will take, if that is long.
void announce(const CheckedRun& run, const RunOptions& options) {
  constexpr Seconds kLong{60};
  if (output_is_quiet() || run.sound_points().empty()) return;
  const Seconds expected = expected_time(run.checked.largest, run.size);
  if (expected > kLong)
    fmt::print(stderr, "{}: {} simulations take {}\n", run.prepared.scenario.name, run.size.simulations,
               time_text(expected, options.processes));
}

/// Prints the estimated size of a run, for --dry-run, and returns how many points failed.
std::size_t print_size(const CheckedRun& run, Library& library, const RunOptions& options) {
  const Scenario& scenario = run.prepared.scenario;
  fmt::print("{}, {}\n", to_string(run.size, scenario.name),
             time_text(run.estimated_work(library), options.processes));
  for (const std::string& misfit : run.checked.misfits) fmt::print("{}\n", misfit);
  for (const auto& [point, reason] : run.checked.failed)
    fmt::print("failed: {}: {}\n", without_controls(scenario.points[point].name), reason);
  for (const std::string& note : run.checked.notes) fmt::print("{}\n", note);
  return run.checked.failed.size();
}

/// Submits the run as a job array, or with --dry-run writes the scripts only.
void submit_to_slurm(const CheckedRun& run, const std::filesystem::path& folder, const RunOptions& options,
                     Library& library) {
  const int tasks =
      slurm_tasks(options.slurm, run.points.size(), run.estimated_work(library), options.processes);
  start_slurm(slurm_run(run.prepared.scenario, options, folder, tasks), options.dry_run);
}

/// Totals over all scenarios of a command.
struct Done {
  std::vector<PublishedRow> published = {};
  std::size_t failed = 0;  ///< number of points
};

/// Ends the run of a shard: what needs all points is left to `merge`.
void end_shard(const Scenario& scenario, const Simulations& all, std::size_t points,
               const RunOptions& options) {
  for (const auto& [point, reason] : all.failed)
    fmt::print("failed: {}: {}\n", without_controls(scenario.points[point].name), reason);
  fmt::print("{}: shard {}, {} of {} points; stepcast merge puts the shards together\n", scenario.name,
             options.shard_text, points, scenario.points.size());
}

/// The values of the first draw at the point that the timeline shows.
std::vector<Assignment> timeline_values(const Scenario& scenario, const RunOptions& options,
                                        const Simulations& all) {
  const std::size_t point = options.timeline.empty() ? 0 : point_of(scenario, "--timeline", options.timeline);
  return values_of(scenario, scenario.points[point].values, all.inputs.front(), all.calibrated.front());
}

FinishedRun whole_run(const CheckedRun& run, const Manifest& manifest, const std::filesystem::path& folder,
                      const RunOptions& options, const MeasuredFiles& measured) {
  return {.prepared = run.prepared,
          .checked = run.checked,
          .manifest = manifest,
          .folder = folder,
          .settings = options.settings,
          .plots = !options.results_only,
          .least_gain = options.least_gain,
          .advice = !options.results_only && !options.no_advice,
          .processes = options.processes,
          .budget = parse_measuring_budget(options.decide),
          .network = measured.network};
}

/// Simulates a scenario, writes its files and prints its tables, and adds to `done`.
void run_scenario(const Scenario& given, const RunOptions& options, const MeasuredFiles& files, Done& done) {
  const bool part = !options.shard_text.empty();
  Library library;
  const CheckedRun run = checked_run(given, options, library);
  const Scenario& scenario = run.prepared.scenario;
  const auto inspect = column_check(scenario);
  if (options.dry_run) done.failed += print_size(run, library, options);
  const auto folder = folder_of(scenario, options);
  if (options.slurm > 0) submit_to_slurm(run, folder, options, library);
  if (options.dry_run || options.slurm > 0) return;
  announce(run, options);
  check_writable(folder);
  const FolderLock lock(folder);
  Manifest manifest = manifest_of(scenario, library, options.settings);
  manifest.seed = run.checked.largest.seed;
  const ForecastOptions wanted{
      .processes = options.processes,
      .draws = run.prepared.draws,
      .points = run.points,
      .failed = run.checked.failed,
      .journal = journal_of(folder, manifest, options),
      .part = part,
      .what_if = !options.results_only,
      .discrepancy = run.prepared.has_discrepancy,
      .progress = true,
      .inspect = inspect,
      .log_likelihood = network_likelihood(files.network),
  };
  if (part) write_shard(folder, shard_of(scenario, options, manifest));
  Simulations all = resumable(kept_in(wanted.journal), [&] { return forecast(scenario, library, wanted); });
  done.failed += all.failed.size();
  const auto values = timeline_values(scenario, options, all);
  MissingFiles missing;
  if (part) {
    end_shard(scenario, all, run.points.size(), options);
  } else {
    const FinishedRun whole = whole_run(run, manifest, folder, options, files);
    const FinishedOutputs finished =
        resumable(kept_in(wanted.journal), [&] { return finish_run(whole, library, std::move(all)); });
    done.published.insert(done.published.end(), finished.published.begin(), finished.published.end());
    missing = finished.missing;
  }
  if (!options.timeline.empty()) {
    const char* name = options.timeline_per_rank ? "timeline" : "timeline.json.gz";
    missing.attempt(folder, name,
                    [&](const auto& file) { write_timeline(scenario, library, values, options, file); });
  }
  missing.report(folder, "free some space and " + how_to_resume(kept_in(wanted.journal)));
  fmt::print("written: {}\n", folder.string());
}

/// Simulates scenarios, writes their results and prints tables.
void run(const RunOptions& given) {
  const SignalGuard guard;  // also outside of simulations, a signal must end with a message and its exit code
  RunOptions options = given;
  options.scenarios.clear();
  for (const std::string& path : given.scenarios) {
    for (const auto& scenario : scenarios_in(path)) options.scenarios.push_back(scenario.string());
  }
  Done done;
  parse_measuring_budget(options.decide);
  const MeasuredFiles measured = measured_files(options.measured);
  for (Scenario& scenario : read_scenarios(options, measured)) {
    for (const std::string& line : leave_out_lost_figures(scenario)) fmt::print("{}\n", line);
    run_scenario(scenario, options, measured, done);
  }
  print_published(done.published);
  report_failed_points(done.failed);
}

void add_inputs(const Command& command, RunOptions& options) {
  command
      .add_option("scenario", options.scenarios,
                  "One or more scenario files, or names in scenarios/; - reads standard input.")
      .required()
      .transform(scenario_file)
      .type_name("SCENARIO.yaml");
  add_results_folder(command, options.output,
                     "Folder for the results. With several scenarios, each has its own folder inside. "
                     "Default: results/SCENARIO-NAME.");
  add_jobs(command, options.processes, "simulations");
  add_settings(command, options.settings);
  command
      .add_option("--draws", options.draws,
                  "Number of draws of the assumptions for each point. With 1, the results are those of one "
                  "simulation, without intervals. Default: 4 for each assumption, but at least 16 and at "
                  "most 32; one simulation suffices without assumptions.")
      .range(1, 100000);
}

void add_parts_and_limits(const Command& command, RunOptions& options) {
  command
      .add_option("--least-gain", options.least_gain,
                  "A doubling of the workers is worth it if it gives this many times the samples per second "
                  "or more. Default: 1.5.")
      .range(1.0, 2.0);
  const Option measured =
      command
          .add_option(
              "--measured", options.measured,
              "Learn from measured runs: a CSV file with columns as in results.csv, a trainer's log, with "
              "the number of workers before it if it does not say it, such as 8=run.log, or the output of "
              "nccl-tests, for the network. The option can be given several times. With --shard or --slurm, "
              "put them into the scenario (key measured).")
          .type_name("RUNS")
          .one_value();
  const Option decide =
      command
          .add_option(
              "--decide", options.decide,
              "Say which run on at most this many devices, and in this time, would narrow the interval of "
              "the point with most workers most. It uses the draws at hand and simulates nothing.")
          .type_name("DEVICES[,TIME]");
  const Option shard =
      command
          .add_option(
              "--shard", options.shard_text,
              "Simulate only part i of N of the points, counted from 0, such as 0/4; the command merge "
              "puts the parts together. Default: all points.")
          .type_name("i/N")
          .excludes(measured)
          .excludes(decide);
  command
      .add_option(
          "--slurm", options.slurm,
          "Submit the run to Slurm as a job array of at most this many tasks, each with at least a minute "
          "of work, and a job that merges the parts. With --dry-run, only write the scripts.")
      .type_name("N")
      .range(1, 100000)
      .excludes(shard)
      .excludes(measured)
      .excludes(decide);
  add_memory_limit(command, options.memory_limit, "Refuse to start");
  add_time_limit(command, options.time_limit, "Refuse to start if the simulations of the largest point");
}

void add_timeline_options(const Command& command, RunOptions& options) {
  command
      .add_option("--timeline", options.timeline,
                  "Also simulate this point with a timeline and write it to timeline.json.gz, for "
                  "ui.perfetto.dev. Default: no timeline.")
      .type_name("POINT");
  command
      .add_option("--timeline-ranks", options.timeline_ranks,
                  "Ranks that the timeline shows, such as 0,8-15, or all. Default: at most 8, the first of "
                  "every role and the lowest others.")
      .type_name("RANKS");
  command.add_flag(
      "--timeline-per-rank", options.timeline_per_rank,
      "Write one timeline file for each rank, timeline/rank-N.json.gz, for Holistic Trace Analysis.");
}

void add_run_flags(const Command& command, RunOptions& options) {
  command.add_flag(
      "--resume", options.resume,
      "Continue an interrupted run. Its finished simulations are used if the inputs and settings "
      "are the same.");
  command.add_flag("--results-only", options.results_only,
                   "Draw no plots, and skip the simulations without noise and of what a user can change.");
  add_no_advice(command, options.no_advice);
  command.add_flag(
      "--dry-run", options.dry_run,
      "Print the number of simulations, the memory and time that they need, and the points that do not fit. "
      "Write no results.");
}

}  // namespace

void add_run(Command app) {
  const Command command = app.add_subcommand(
      "run", "Simulate every point of a scenario, print a table, and write results and plots.");
  auto options = std::make_shared<RunOptions>();
  add_inputs(command, *options);
  add_parts_and_limits(command, *options);
  add_timeline_options(command, *options);
  add_run_flags(command, *options);
  command.callback(
      [options] {
        if (options->slurm > 0 && options->processes == 0) options->processes = 1;
        options->processes = jobs_or_cores(options->processes);
        read_shard(*options);
        run(*options);
      },
      Command::Json::yes);
  command.footer(
      "Example: stepcast run scenarios/quickstart.yaml --set sweep.workers=[1,8,64] -o /tmp/quick");
}

}  // namespace stepcast
