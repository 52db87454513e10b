#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <thread>

#include "commands/commands.hpp"
#include "commands/limits.hpp"
#include "commands/pool.hpp"
#include "commands/simulate_learning.hpp"
#include "commands/task_progress.hpp"
#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "report/csv.hpp"
#include "report/human.hpp"
#include "report/json_lines.hpp"
#include "report/table.hpp"
#include "validate/learner.hpp"
#include "validate/learning_curves.hpp"
#include "validate/validation.hpp"

namespace stepcast {
namespace {

struct Options {
  std::string scenario, output, memory_limit;
  std::vector<std::string> settings;
  int processes = 0;
};

/// A point with as many steps as its learning takes.
struct LearningPoint {
  std::string name;
  Experiment experiment;
  std::int64_t batch = 1;  ///< samples of a pass
};

/// @param steps  that are tried first: another number is known only when the experiment is built
LearningPoint learning_point(const Scenario& scenario, const Point& point, std::int64_t steps,
                             Library& library) {
  const auto built = [&](std::int64_t count) {
    std::vector<Assignment> values = middle_values(scenario, point);
    values.push_back(parse_assignment(fmt::format("simulation.steps={}", count)));
    return build_experiment(scenario.document, std::move(values), library);
  };
  Experiment experiment = built(steps);
  if (!experiment.learning)
    throw InputError(
        fmt::format("{}: learn needs learning: what to learn, see docs/learning.md", scenario.file.string()));
  const std::string why = compresses_gradients(scenario, point)
                              ? "compressed gradients learn in real runs alone (stepcast validate)"
                              : why_not_simulated_learning(experiment);
  if (!why.empty())
    throw InputError(
        fmt::format("{}: point {} cannot learn here: {}", scenario.file.string(), point.name, why));
  if (learning_steps(experiment) != experiment.steps) experiment = built(learning_steps(experiment));
  return {point.name, std::move(experiment), samples_of_pass(scenario, point)};
}

std::vector<LearningPoint> learning_points(const Scenario& scenario) {
  if (!scenario.calibrations.empty())
    throw InputError(
        fmt::format("{}: learn does not calibrate; set the keys themselves", scenario.file.string()));
  Library library;
  std::vector<LearningPoint> points;
  for (const Point& point : scenario.points) {
    const std::int64_t steps = points.empty() ? 1 : points.back().experiment.steps;  // mostly all the same
    points.push_back(learning_point(scenario, point, steps, library));
  }
  return points;
}

void check_memory(const std::vector<LearningPoint>& points, const Options& options) {
  Bytes most;
  for (const LearningPoint& point : points) most = std::max(most, learning_memory(point.experiment));
  check_process_memory(most, options.processes, options.memory_limit);
}

Results learned(const Scenario& scenario, const std::vector<LearningPoint>& points, int processes) {
  std::vector<Task> tasks;
  for (const LearningPoint& point : points) {
    tasks.push_back([&scenario, &point] {
      std::string text;
      for (const Row& row : simulate_learning(point.experiment, point.batch))
        text += to_json_line({scenario.name, {}}, row) + "\n";
      return text;
    });
  }
  TaskProgress progress(tasks.size(), "points");
  std::vector<Results> of_points(tasks.size());
  run_tasks(tasks, processes, [&](std::size_t task, const std::string& text) {
    of_points[task] = read_json_lines(text, "a simulation");
    progress.one_done();
  });
  progress.clear();
  Results all{scenario.name, {}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const Row& row : of_points[i].rows) all.rows.push_back(with_first("point", points[i].name, row));
  }
  return all;
}

Table learning_table(const std::vector<Learned>& points) {
  Table table;
  table.columns = {{"point", "", Align::left, 70},
                   {"mini-batches", "of a worker"},
                   {"time"},
                   {"loss"},
                   {"accuracy", "%"},
                   {"time to", fmt::format("loss {:.3g}", points.front().common_loss)}};
  for (const Learned& one : points) {
    table.rows.push_back({one.point, std::to_string(one.mini_batches), human(Seconds{one.seconds}),
                          fmt::format("{:.3g}", one.loss),
                          one.accuracy ? fmt::format("{:.1f}", 100 * *one.accuracy) : "",
                          human(Seconds{one.seconds_to_common_loss})});
  }
  return table;
}

void learn(const Options& options) {
  std::vector<Assignment> settings;
  for (const std::string& text : options.settings) settings.push_back(parse_assignment(text));
  const Scenario scenario = read_scenario(options.scenario, settings);
  const std::vector<LearningPoint> points = learning_points(scenario);
  check_memory(points, options);
  const std::filesystem::path folder = options.output.empty()
                                           ? std::filesystem::path("results") / scenario.name
                                           : std::filesystem::path(options.output);
  check_writable(folder);
  const Results learning = learned(scenario, points, options.processes);
  write_atomically(folder / "learning.csv", to_csv(learning));
  fmt::print("{}: {} learns on {}, in the time of the simulated cluster\n{}", scenario.name,
             points.front().experiment.model.name, points.front().experiment.platform.name,
             to_string(learning_table(what_was_learned(learning))));
  CurvePlot plot = loss_curves(learning);
  plot.time = "seconds of the simulated cluster";
  if (const auto script = curve_script(plot)) {
    if (const auto complaint = draw_plot(folder, "loss-vs-time", *script)) fmt::print("{}\n", *complaint);
  }
  fmt::print("written: {}\n", folder.string());
}

}  // namespace

void add_learn(CLI::App& app) {
  auto* command = app.add_subcommand("learn", "Train on a simulated cluster: loss against its time");
  auto options = std::make_shared<Options>();
  command->add_option("scenario", options->scenario, "scenario file with learning:")
      ->required()
      ->type_name("SCENARIO.yaml");
  command->add_option("-o,--output", options->output, "folder (default results/SCENARIO-NAME)")
      ->type_name("DIR");
  command->add_option("-j,--jobs", options->processes, "points at once (default: cores)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--set", options->settings, "replace a value of the scenario")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--memory-limit", options->memory_limit,
                   "refuse to take more (default: 80 % of the machine's)")
      ->type_name("SIZE");
  command->footer("Example: stepcast learn scenarios/learn/small-cnn.yaml");
  command->callback([options] {
    if (options->processes == 0)
      options->processes = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    learn(*options);
  });
}

}  // namespace stepcast
