#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "commands/commands.hpp"
#include "commands/learn/learning_points.hpp"
#include "commands/learn/learning_trends.hpp"
#include "commands/learn/simulate_learning.hpp"
#include "core/os/atomic_file.hpp"
#include "core/os/folder_lock.hpp"
#include "forecast/resource_limits.hpp"
#include "report/results/results_text.hpp"
#include "report/text/display_text.hpp"
#include "report/text/text_table.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {
namespace {

struct LearnOptions {
  std::string scenario, output, memory_limit;
  std::vector<std::string> settings;
  int processes = 0;
  bool checkpoints = false, resume = false;
};

void check_memory(const std::vector<LearningRun>& runs, const LearnOptions& options) {
  Bytes most;
  for (const LearningRun& run : runs) most = std::max(most, learning_memory(run.experiment));
  check_process_memory(most, options.processes, options.memory_limit);
}

std::string range_of(const LearnedPoint& point) {
  return point.seeds < 2 ? "" : fmt::format("{:.3g} to {:.3g}", point.lowest_loss, point.highest_loss);
}

/// Learning per sample, samples per second and their product: the time to the target loss.
Table learning_table(const std::vector<LearnedPoint>& points, double target_loss) {
  Table table;
  const std::string target = fmt::format("loss {:.3g}", target_loss);
  table.columns = {{"point", "", Align::left, 70},
                   {"mini-batches", "of a worker"},
                   {"time"},
                   {"loss"},
                   {"of all", "seeds"},
                   {"accuracy", "%"},
                   {"samples to", target},
                   {"samples", "per second"},
                   {"time to", target}};
  for (const LearnedPoint& one : points) {
    table.rows.push_back(
        {one.point, std::to_string(one.mini_batches), human(Seconds{one.seconds}),
         fmt::format("{:.3g}", one.loss), range_of(one),
         one.accuracy ? fmt::format("{:.1f}", 100 * *one.accuracy) : "",
         one.samples_to_target ? fmt::format("{:.0f}", *one.samples_to_target) : "not reached",
         fmt::format("{:.4g}", one.seconds > 0 ? one.samples / one.seconds : 0),
         one.seconds_to_target ? human(Seconds{*one.seconds_to_target}) : "not reached"});
  }
  return table;
}

/// Learning per record, records per second and their product for each point. The learning of a record is the
/// share of the way to the target loss: 1 / (records to the target).
Results learning_per_second(const std::string& scenario, const std::vector<LearnedPoint>& points) {
  Results results{scenario, {}};
  for (const LearnedPoint& one : points) {
    Row& row = results.rows.emplace_back();
    const double rate = one.seconds > 0 ? one.samples / one.seconds : 0;
    row.set("point", one.point);
    row.set("learning_per_record", one.samples_to_target ? 1 / *one.samples_to_target : 0);
    row.set("records_per_second", rate);
    row.set("learning_per_second", one.samples_to_target ? rate / *one.samples_to_target : 0);
    if (one.seconds_to_target) row.set("seconds_to_target", *one.seconds_to_target);
    row.set("loss", one.loss);
  }
  return results;
}

Results trained_or_interrupted(const LearningJob& job, const std::vector<LearningRun>& runs) {
  try {
    return trained(job, runs);
  } catch (const Interrupted&) {
    throw Interrupted("interrupted; continue with --resume");
  }
}

void draw(const std::filesystem::path& folder, const std::string& name, const CurvePlot& plot) {
  if (const auto script = curve_script(plot)) {
    if (const auto complaint = draw_plot(folder, name, *script)) fmt::print("{}\n", *complaint);
  }
}

/// Returns the number that follows "workers=" in the name of a point, and the name without it.
std::optional<std::pair<double, std::string>> workers_of(const std::string& name) {
  static constexpr std::string_view kKey = "workers=";
  const std::size_t at = name.find(kKey);
  if (at == std::string::npos || (at > 0 && name[at - 1] != ' ')) return std::nullopt;
  const std::size_t end = std::min(name.find(", ", at), name.size());
  std::string rest = name.substr(0, at) + name.substr(std::min(end + 2, name.size()));
  if (rest.ends_with(", ")) rest.resize(rest.size() - 2);
  return std::pair{std::stod(name.substr(at + kKey.size(), end - at - kKey.size())), rest};
}

/// Time to the target loss against workers, with a curve for each combination of the other keys.
CurvePlot time_to_target_plot(const Scenario& scenario, const std::vector<LearnedPoint>& points,
                              double target_loss) {
  CurvePlot plot{.title = fmt::format("{}: time to loss {:.3g}", scenario.name, target_loss),
                 .quantity = "seconds of the simulated cluster",
                 .time = "workers"};
  std::map<std::string, Curve> curves;
  for (const LearnedPoint& point : points) {
    const auto workers = workers_of(point.point);
    if (!workers || !point.seconds_to_target) continue;
    curves[workers->second].measured.emplace_back(workers->first, *point.seconds_to_target);
  }
  for (auto& [name, curve] : curves) {
    std::ranges::sort(curve.measured);
    curve.name = name.empty() ? scenario.name : name;
    plot.curves.push_back(std::move(curve));
  }
  return plot;
}

void learn(const LearnOptions& options) {
  std::vector<Assignment> settings;
  for (const std::string& text : options.settings) settings.push_back(parse_assignment(text));
  const Scenario scenario = read_scenario(options.scenario, settings);
  const std::vector<LearningRun> runs = learning_runs(scenario);
  const LearningOptions& learning = *runs.front().experiment.learning;
  check_memory(runs, options);
  const std::filesystem::path folder = options.output.empty()
                                           ? std::filesystem::path("results") / scenario.name
                                           : std::filesystem::path(options.output);
  check_writable(folder);
  const FolderLock lock(folder);
  const TrainingStore finished(folder, fingerprint_of(scenario, options.settings), options.resume);
  const Results rows =
      trained_or_interrupted({scenario, folder, options.checkpoints, options.processes, finished}, runs);
  write_atomically(folder / "learning.csv", to_csv(rows));
  add_json_rows("learning", rows);
  const double target = learning.target_loss.value_or(common_loss(rows));
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
  draw(folder, "time-to-loss", time_to_target_plot(scenario, points, target));
  fmt::print("written: {}\n", folder.string());
}

}  // namespace

void add_learn(Command app) {
  const Command command = app.add_subcommand(
      "learn",
      "Train a network on the clock of a simulated cluster, and write loss and accuracy against time.");
  auto options = std::make_shared<LearnOptions>();
  command.add_option("scenario", options->scenario, "Scenario file with the key learning.")
      .required()
      .type_name("SCENARIO.yaml");
  command
      .add_option("-o,--output", options->output, "Folder for the results. Default: results/SCENARIO-NAME.")
      .type_name("DIR");
  command
      .add_option("-j,--jobs", options->processes,
                  "Number of trainings at the same time. Default: the number of cores.")
      .range(1, 4096);
  command.add_flag(
      "--checkpoints", options->checkpoints,
      "Keep the parameters at the end of each training, as training-N.parameters in the order of "
      "learning.csv. The key learning.start reads such a file.");
  command.add_flag(
      "--resume", options->resume,
      "Continue an interrupted call. Its finished trainings are used if the inputs and settings are "
      "the same.");
  command
      .add_option("--set", options->settings,
                  "Replace a value of the scenario, such as strategy.bucket=\"25 MiB\". KEY=null removes the "
                  "key. The option can be given several times.")
      .type_name("KEY=VALUE")
      .one_value();
  command
      .add_option("--memory-limit", options->memory_limit,
                  "Refuse to start if all processes together would need more memory than this, such as "
                  "\"8 GiB\". Default: 80 % of the machine's memory.")
      .type_name("SIZE");
  command.footer("Example: stepcast learn scenarios/learn/small-cnn.yaml");
  command.callback(
      [options] {
        if (options->processes == 0)
          options->processes = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
        learn(*options);
      },
      Command::Json::yes);
}

}  // namespace stepcast
