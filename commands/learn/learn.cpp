#include <fmt/format.h>

#include <optional>

#include "commands/commands.hpp"
#include "commands/learn/learned_campaign.hpp"
#include "commands/learn/learning_points.hpp"
#include "commands/learn/learning_tables.hpp"
#include "commands/scenario_options.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "forecast/resource_limits.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"
#include "scenarios/reader/library.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {
namespace {

struct LearnOptions {
  std::string scenario, output, memory_limit, time_limit;
  std::vector<std::string> settings;
  int processes = 0;
  bool checkpoints = false, resume = false, dry_run = false;
};

void draw(const std::filesystem::path& folder, const std::string& name, const CurvePlot& plot) {
  if (const auto script = curve_script(plot)) {
    if (const auto complaint = draw_plot(folder, name, *script)) fmt::print("{}\n", *complaint);
  }
}

/// The scenario's campaigns: what each found, and when.
void run_campaigns(const LearningJob& job, const std::vector<LearningRun>& runs) {
  if (job.checkpoints) throw InputError("--checkpoints: not supported with campaign");
  const std::string& name = job.scenario.name;
  const auto campaigns = learned_campaigns(job, runs);
  const Results results = campaign_results(name, campaigns);
  write_atomically(job.folder / "campaign.csv", to_csv(results));
  write_atomically(job.folder / "campaign-points.csv", to_csv(campaign_points(name, campaigns)));
  add_json_rows("campaign", results);
  const Experiment& first = runs.front().experiment;
  fmt::print("{}: campaigns of {} on {}; every point is trained, in the time of the simulated cluster\n{}",
             name, first.model.name, first.platform.name,
             to_string(campaign_table(results, campaigns.front().objective), terminal_width()));
  draw(job.folder, "best-vs-hours", best_against_hours(name, campaigns));
  draw(job.folder, "regret-vs-utilization", regret_against_utilization(results));
  fmt::print("written: {}\n", job.folder.string());
}

/// Trains all points, and prints how the loss falls in the time of the simulated cluster.
void run_trainings(const LearningJob& job, const std::vector<LearningRun>& runs) {
  const Scenario& scenario = job.scenario;
  const std::filesystem::path& folder = job.folder;
  const LearningOptions& learning = *runs.front().experiment.learning;
  const Results rows = trained(job, runs);
  write_atomically(folder / "learning.csv", to_csv(rows));
  add_json_rows("learning", rows);
  const std::optional<double> target = learning.target_loss;
  const std::vector<LearnedRun> learned = learned_runs(rows, target);
  const std::vector<LearnedPoint> points = learned_points(learned);
  write_atomically(folder / "learning-per-second.csv", to_csv(learning_per_second(scenario.name, points)));
  fmt::print("{}: {} learns on {}, in the time of the simulated cluster\n{}", scenario.name,
             runs.front().experiment.model.name, runs.front().experiment.platform.name,
             to_string(learning_table(points, target), terminal_width()));
  if (!learning.trends.empty()) {
    const std::vector<TrendResult> trends = trend_results(scenario, learning.trends, learned);
    write_atomically(folder / "trends.csv", to_csv(to_results(scenario.name, trends)));
    add_json_rows("trends", to_results(scenario.name, trends));
    fmt::print("\n{}", to_string(trend_table(trends), terminal_width()));
  }
  CurvePlot curves = loss_curves(rows);
  curves.time = "seconds of the simulated cluster";
  draw(folder, "loss-vs-time", curves);
  if (target) draw(folder, "time-to-loss", time_to_target_plot(scenario.name, points, *target));
  fmt::print("written: {}\n", folder.string());
}

/// Prints the estimated size of the trainings, for --dry-run.
void print_size(const Scenario& scenario, const std::vector<LearningRun>& runs, int processes) {
  fmt::print("{}: {} {}{}, about {} a process, {}\n", scenario.name, runs.size(),
             is_learned_campaign(runs) ? "campaign" : "training", runs.size() == 1 ? "" : "s",
             human(learning_memory(runs)),
             time_text(learning_time(runs, cut_trainings(scenario, runs)), processes));
}

void learn(const LearnOptions& options) {
  const Scenario scenario = read_scenario(options.scenario, parse_assignments(options.settings));
  const std::vector<LearningRun> runs = learning_runs(scenario);
  const LearningOptions& learning = *runs.front().experiment.learning;
  check_trends(scenario, learning.trends);
  if (options.dry_run) return print_size(scenario, runs, options.processes);
  check_learning_limits(runs, cut_trainings(scenario, runs),
                        {options.processes, options.memory_limit, options.time_limit});
  const std::filesystem::path folder = results_folder(options.output, scenario.name);
  check_writable(folder);
  const FolderLock lock(folder);
  const TrainingStore finished(folder, fingerprint_of(scenario, options.settings), options.resume);
  const LearningJob job{scenario, folder, options.checkpoints, options.processes, finished};
  resumable("finished trainings are kept",
            [&] { is_learned_campaign(runs) ? run_campaigns(job, runs) : run_trainings(job, runs); });
}

}  // namespace

void add_learn(Command app) {
  const Command command = app.add_subcommand(
      "learn",
      "Train a network on the clock of a simulated cluster, and write loss and accuracy against time.");
  auto options = std::make_shared<LearnOptions>();
  command
      .add_option("scenario", options->scenario,
                  "Scenario file with the key learning, or a name such as learn/small-cnn.")
      .transform(scenario_file)
      .required()
      .type_name("SCENARIO.yaml");
  add_results_folder(command, options->output);
  add_jobs(command, options->processes, "trainings");
  command.add_flag(
      "--checkpoints", options->checkpoints,
      "Keep the parameters at the end of each training, as training-N.parameters in the order of "
      "learning.csv. The key learning.start reads such a file.");
  command.add_flag(
      "--resume", options->resume,
      "Continue an interrupted call. Its finished trainings are used if the inputs and settings are "
      "the same.");
  command.add_flag("--dry-run", options->dry_run,
                   "Print the number of trainings and the memory and time that they need. Write no results.");
  add_settings(command, options->settings);
  add_memory_limit(command, options->memory_limit, "Refuse to start");
  add_time_limit(command, options->time_limit, "Refuse to start if all trainings together");
  command.footer("Example: stepcast learn scenarios/learn/small-cnn.yaml");
  command.callback(
      [options] {
        options->processes = jobs_or_cores(options->processes);
        learn(*options);
      },
      Command::Json::yes);
}

}  // namespace stepcast
