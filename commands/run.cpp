#include "commands/run.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <set>
#include <thread>

#include "commands/commands.hpp"
#include "commands/limits.hpp"
#include "commands/outputs.hpp"
#include "commands/time_estimate.hpp"
#include "commands/time_limit.hpp"
#include "commands/timeline.hpp"
#include "commands/version.hpp"
#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "report/comparison.hpp"
#include "report/results_table.hpp"
#include "report/sha256.hpp"
#include "scenarios/sweep.hpp"

namespace stepcast {
namespace {

/// The command line, one entry an argument.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

/// Points of this shard.
std::vector<std::size_t> chosen_points(const Scenario& scenario, const RunOptions& options) {
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) {
    if (static_cast<int>(i % static_cast<std::size_t>(options.shards)) == options.shard) points.push_back(i);
  }
  if (points.empty())
    throw InputError(fmt::format("--shard: there are only {} points", scenario.points.size()));
  return points;
}

std::filesystem::path folder_of(const Scenario& scenario, const RunOptions& options) {
  const std::filesystem::path name = scenario.name;
  if (options.output.empty()) return "results" / name;
  return options.scenarios.size() > 1 ? options.output / name : std::filesystem::path(options.output);
}

Manifest manifest_of(const Scenario& scenario, const Library& library) {
  Manifest manifest;
  manifest.version = kVersion;
  manifest.scenario = scenario.name;
  manifest.command = own_command();
  manifest.sweep = scenario.sweep_keys;
  manifest.inputs.push_back(hashed("scenario", scenario.file));
  for (const auto& [role, path] : library.files()) manifest.inputs.push_back(hashed(role, path));
  manifest.date =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                  std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()));
  return manifest;
}

/// Journal of finished simulations; kept across runs only where `--resume` asks and inputs are the same.
std::filesystem::path journal_of(const std::filesystem::path& folder, const Manifest& manifest,
                                 const RunOptions& options) {
  std::string all = manifest.version + std::to_string(options.draws);
  for (const InputFile& input : manifest.inputs) all += input.path + input.sha256;
  for (const std::string& setting : options.settings) all += setting + "\n";
  const auto journal = folder / "simulations.jsonl";
  const auto mark = folder / "simulations.sha256";
  const std::string print = sha256(all);
  std::error_code error;
  const bool same = std::filesystem::exists(mark, error) && read_file(mark) == print + "\n";
  if (!options.resume || !same) {
    std::filesystem::remove(journal, error);
    write_atomically(mark, print + "\n");
  }
  return journal;
}

/// Every point is built once before any is simulated, so that a bad value is found first.
Experiment checked(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library) {
  std::vector<double> middle(scenario.assumptions.size(), 0.5), calibrated;
  for (const Feed& feed : scenario.calibrations) calibrated.push_back((feed.range.low + feed.range.high) / 2);
  Experiment largest;
  for (const std::size_t point : points) {
    const auto values = values_of(scenario, scenario.points[point].values, middle, calibrated);
    Experiment experiment = build_experiment(scenario.document, values, library);
    if (experiment.plan.workers >= largest.plan.workers) largest = std::move(experiment);
  }
  return largest;
}

void print_assumptions(const Outputs& outputs, const Simulations& all, const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.calibrations.size(); ++i) {
    const Feed& feed = scenario.calibrations[i];
    fmt::print("calibrated: {} = {:.4g}{} meets {} = {:.4g} at {}{}\n", feed.range.key,
               all.calibrated.front()[i], feed.range.unit, feed.column, feed.value, point_name(feed.point),
               feed.over.empty() ? "" : " / " + point_name(feed.over));
  }
  if (outputs.sensitivity.empty()) return;
  fmt::print("step time at {}: share of the variance that each assumption explains\n",
             outputs.sensitive_point);
  for (const Sensitivity& one : outputs.sensitivity)
    fmt::print("  {:5.1f} %  {}\n", 100 * one.share, one.name);
}

/// Points that do not fit, and why.
void print_misfits(const Results& results) {
  for (const Row& row : results.rows) {
    const std::string why = row.text("why_not");
    if (!why.empty()) fmt::print("does not fit: {}: {}\n", row.text("point"), why);
  }
}

void print_flags(const Experiment& experiment) {
  for (const std::string& flag : experiment.plan.flags) fmt::print("note on the trace: {}\n", flag);
}

Outputs outputs_of(const Scenario& scenario, const std::vector<std::size_t>& points, const Simulations& all) {
  Outputs outputs;
  outputs.results = summarized_results(scenario, points, all);
  outputs.published = compared_with_published(scenario, points, all);
  const std::size_t judged = judged_point(scenario, points);
  outputs.sensitive_point = scenario.points[judged].name;
  outputs.sensitivity = explained(scenario, all, judged, "step_seconds");
  return outputs;
}

std::vector<std::string> leading_columns(const Scenario& scenario) {
  std::vector<std::string> leading;
  for (const std::string& key : scenario.sweep_keys) {
    if (key != "workers") leading.push_back(key);
  }
  return leading;
}

/// One scenario from file to files. @return its published rows
std::vector<PublishedRow> run_scenario(const std::string& file, const RunOptions& options) {
  std::vector<Assignment> settings;
  for (const std::string& text : options.settings) settings.push_back(parse_assignment(text));
  const Scenario scenario = read_scenario(file, settings);
  const auto points = chosen_points(scenario, options);
  if (!options.timeline.empty()) timeline_point(scenario, options.timeline);  // a wrong name is found first
  Library library;
  const Experiment largest = checked(scenario, points, library);
  const int draws = scenario.assumptions.empty() ? 1 : options.draws;
  const RunSize size = estimated(largest, points.size(), options.results_only ? draws : draws + 3);
  check_limits(size, options);
  check_time(largest, size, options);
  if (options.dry_run) {
    const Seconds time = estimated_time(scenario, points, library, draws, size.simulations);
    fmt::print("{}, {}\n", to_string(size, scenario.name), time_text(time, options.processes));
    return {};
  }
  const auto folder = folder_of(scenario, options);
  check_writable(folder);
  Manifest manifest = manifest_of(scenario, library);
  manifest.seed = largest.seed;

  Progress progress(std::cerr, progress_style(), static_cast<std::size_t>(size.simulations));
  ForecastOptions wanted{
      options.processes, options.draws,        points, journal_of(folder, manifest, options),
      &progress,         !options.results_only};
  Simulations all = forecast(scenario, library, wanted);
  progress.clear();
  add_scaling(scenario, points, all);
  const Outputs outputs = outputs_of(scenario, points, all);
  std::set<std::string> forms;
  for (const Row& row : outputs.results.rows) forms.insert(row.text("communication_form"));
  manifest.forms.assign(forms.begin(), forms.end());
  const auto complaints = write_outputs(folder, outputs, manifest, !options.results_only);
  if (!options.timeline.empty()) {
    const auto& point = scenario.points[timeline_point(scenario, options.timeline)];
    write_timeline(scenario, library,
                   values_of(scenario, point.values, all.inputs.front(), all.calibrated.front()),
                   folder / "timeline.json");
  }

  fmt::print("{}: {} on {}\n{}", scenario.name, largest.model.name, largest.platform.name,
             to_string(results_table(outputs.results, leading_columns(scenario))));
  print_misfits(outputs.results);
  print_assumptions(outputs, all, scenario);
  print_flags(largest);
  for (const std::string& complaint : complaints) fmt::print("{}\n", complaint);
  fmt::print("written: {}\n", folder.string());
  return outputs.published;
}

}  // namespace

void run(const RunOptions& options) {
  std::vector<PublishedRow> published;
  for (const std::string& file : options.scenarios) {
    const auto rows = run_scenario(file, options);
    published.insert(published.end(), rows.begin(), rows.end());
  }
  if (published.empty()) return;
  fmt::print("\nforecasts beside published figures\n{}{}\n", to_string(published_table(published)),
             to_string(summarized(published)));
}

void add_run(CLI::App& app) {
  auto* command = app.add_subcommand("run", "Simulate every point of a scenario: table, files and plots");
  auto options = std::make_shared<RunOptions>();
  command->add_option("scenario", options->scenarios, "scenario files")
      ->required()
      ->type_name("SCENARIO.yaml");
  command->add_option("-o,--output", options->output, "folder for results (default results/SCENARIO-NAME)")
      ->type_name("DIR");
  command->add_option("-j,--jobs", options->processes, "simulations at once (default: cores)")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--set", options->settings,
                   "replace a value of the scenario, such as strategy.bucket=\"25 MiB\"")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--draws", options->draws, "draws of the assumptions a point")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--shard", options->shard_text, "simulate part i of N of the points, such as 0/4")
      ->type_name("i/N");
  command
      ->add_option("--memory-limit", options->memory_limit,
                   "refuse runs that need more, such as \"8 GiB\" (default: 80 % of the machine's)")
      ->type_name("SIZE");
  command
      ->add_option("--time-limit", options->time_limit,
                   "refuse a run whose largest point would take longer, such as \"2 h\" (default: 1 h)")
      ->type_name("TIME");
  command
      ->add_option("--timeline", options->timeline, "write timeline.json of this point for ui.perfetto.dev")
      ->type_name("POINT");
  command->add_flag("--resume", options->resume, "go on after an interrupted run with the same inputs");
  command->add_flag("--results-only", options->results_only,
                    "no plots, and no search for the resource that would help most: a quarter of the time");
  command->add_flag("--dry-run", options->dry_run, "say how many simulations and how much memory, and stop");
  command->callback([options] {
    options->processes = options->processes > 0
                             ? options->processes
                             : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    read_shard(*options);
    run(*options);
  });
  command->footer(
      "Example: stepcast run scenarios/quickstart.yaml --set sweep.workers=[1,8,64] -o /tmp/quick");
}

}  // namespace stepcast
