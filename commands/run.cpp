#include "commands/run.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <thread>

#include "commands/checked_points.hpp"
#include "commands/commands.hpp"
#include "commands/limits.hpp"
#include "commands/outputs.hpp"
#include "commands/run_files.hpp"
#include "commands/run_report.hpp"
#include "commands/signals.hpp"
#include "commands/time_estimate.hpp"
#include "commands/time_limit.hpp"
#include "commands/timeline.hpp"
#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "report/comparison.hpp"

namespace stepcast {
namespace {

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

Outputs outputs_of(const Scenario& scenario, const std::vector<std::size_t>& points, const Simulations& all) {
  Outputs outputs;
  outputs.results = summarized_results(scenario, points, all);
  outputs.published = compared_with_published(scenario, points, all);
  const Judged judged = judged_figure(scenario, points);
  outputs.sensitive_point = scenario.points[judged.point].name;
  outputs.sensitive_column = judged.column;
  outputs.sensitivity = explained(scenario, all, judged.point, judged.column);
  return outputs;
}

/// Does it; what was simulated is kept when it is interrupted.
template <class Doing>
auto resumable(const std::filesystem::path& journal, const Doing& doing) {
  try {
    return doing();
  } catch (const Interrupted&) {
    throw Interrupted(
        fmt::format("interrupted; go on with --resume (what was simulated is kept in {})", journal.string()));
  }
}

/// All scenarios, read before the first of them is run. Results lie in folders of the scenarios' names, so no
/// two may have the same.
std::vector<Scenario> read_scenarios(const RunOptions& options) {
  std::vector<Assignment> settings;
  for (const std::string& text : options.settings) settings.push_back(parse_assignment(text));
  std::vector<Scenario> scenarios;
  std::map<std::string, std::string> files;  // by name
  for (const std::string& file : options.scenarios) {
    scenarios.push_back(read_scenario(file, settings));
    const auto [other, is_new] = files.emplace(scenarios.back().name, file);
    if (!is_new)
      throw InputError(fmt::format("{}: name: {} is the name of {} too; its results would be overwritten",
                                   file, other->first, other->second));
  }
  return scenarios;
}

/// One scenario from its points to files. @return its published rows
std::vector<PublishedRow> run_scenario(const Scenario& scenario, const RunOptions& options) {
  const auto points = chosen_points(scenario, options);
  if (!options.timeline.empty()) timeline_point(scenario, options.timeline);  // a wrong name is found first
  Library library;
  const auto [largest, misfits] = checked_points(scenario, points, library);
  const int draws = scenario.assumptions.empty() ? 1 : options.draws;
  const int extra = options.results_only ? 0 : extra_simulations(scenario);
  const RunSize size = estimated(largest, points.size(), draws + extra);
  check_limits(size, options);
  check_time(largest, size, options);
  const auto inspect = published_check(scenario);
  if (options.dry_run) {
    const Seconds time = estimated_time(scenario, points, library, draws, size.simulations);
    fmt::print("{}, {}\n", to_string(size, scenario.name), time_text(time, options.processes));
    for (const std::string& misfit : misfits) fmt::print("{}\n", misfit);
    for (const std::string& note : largest.plan.flags) fmt::print("{}\n", note);
    return {};
  }
  const auto folder = folder_of(scenario, options);
  check_writable(folder);
  Manifest manifest = manifest_of(scenario, library);
  manifest.seed = largest.seed;

  const ForecastOptions wanted{
      .processes = options.processes,
      .draws = options.draws,
      .points = points,
      .journal = journal_of(folder, manifest, options),
      .what_if = !options.results_only,
      .progress = true,
      .inspect = inspect,
  };
  Simulations all = resumable(wanted.journal, [&] { return forecast(scenario, library, wanted); });
  add_scaling(scenario, points, all);
  const Outputs outputs = outputs_of(scenario, points, all);
  std::set<std::string> forms;
  for (const Row& row : outputs.results.rows) forms.insert(row.text("communication_form"));
  manifest.forms.assign(forms.begin(), forms.end());
  const auto complaints = resumable(wanted.journal, [&] {
    auto lines = write_outputs(folder, outputs, manifest, !options.results_only);
    SignalGuard::stop_if_interrupted();
    if (!options.timeline.empty()) {
      const auto& point = scenario.points[timeline_point(scenario, options.timeline)];
      write_timeline(scenario, library,
                     values_of(scenario, point.values, all.inputs.front(), all.calibrated.front()),
                     folder / "timeline.json");
    }
    return lines;
  });

  print_outputs(outputs, all, scenario, largest);
  for (const std::string& complaint : complaints) fmt::print("{}\n", complaint);
  fmt::print("written: {}\n", folder.string());
  return outputs.published;
}

}  // namespace

void run(const RunOptions& options) {
  const SignalGuard guard;  // all the way: what is no simulation ends with a word and the right exit code too
  std::vector<PublishedRow> published;
  for (const Scenario& scenario : read_scenarios(options)) {
    const auto rows = run_scenario(scenario, options);
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
      ->add_option(
          "--set", options->settings,
          "replace a value of the scenario, such as strategy.bucket=\"25 MiB\"; KEY=null takes it away")
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
  command->add_flag(
      "--dry-run", options->dry_run,
      "say how many simulations, how much memory and time, and which points do not fit, and stop");
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
