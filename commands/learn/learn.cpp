#include "commands/learn/learn.hpp"

#include <fmt/format.h>

#include <thread>

#include "commands/commands.hpp"
#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "core/os/folder_lock.hpp"
#include "forecast/process_pool.hpp"
#include "forecast/resource_limits.hpp"
#include "forecast/simulate_point.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "report/results/results_text.hpp"
#include "report/text/display_text.hpp"
#include "report/text/text_table.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "sim/workers/simulate.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {
namespace {

/// The network and arrays of one rank; the simulated clock decides when they compute.
class LearningMemory : public WorkerMemory {
 public:
  LearningMemory(const Experiment& experiment, Backend& backend, Learner::Options options)
      : learner_(experiment, backend, std::move(options)), device_(learner_.device()) {
    device_->begin();
  }

  void compute(Work pass, LayerRange layers) override { device_->compute(pass, layers); }
  void calculate(const Arithmetic& run) override { device_->calculate(run); }
  std::span<float> memory(const Buffer& buffer) override { return device_->memory(buffer); }
  void step_ended(double seconds) override { learner_.step_ended(seconds); }

  std::vector<Row> rows() { return learner_.evaluate(); }

 private:
  Learner learner_;
  std::unique_ptr<RankDevice> device_;
};

}  // namespace

std::string unsupported_simulated_learning(const Experiment& experiment) {
  if (experiment.plan.sharing.form != NetworkSharing::Form::none)
    return "ranks with different parts of the network are supported in real runs only (stepcast validate)";
  const int ranks = static_cast<int>(experiment.plan.endpoints.size());
  const std::string why = unsupported_in_real_run(experiment.plan, ranks, false);
  return why.empty() ? unsupported_learning(experiment) : why;
}

Bytes learning_memory(const Experiment& experiment) {
  return static_cast<double>(experiment.plan.endpoints.size()) * experiment.plan.memory.total();
}

std::vector<Row> simulate_learning(const Experiment& experiment, std::int64_t batch) {
  set_kernel_threads(1);  // only one rank computes at a time, and other points use the other cores
  const auto data = learning_data(experiment);
  const auto backend = make_onednn_backend();
  std::vector<std::unique_ptr<LearningMemory>> ranks;
  Simulation simulation = simulation_of(experiment, Doubled::none);
  simulation.fold = Folding::never;
  for (std::size_t rank = 0; rank < experiment.plan.endpoints.size(); ++rank) {
    ranks.push_back(std::make_unique<LearningMemory>(
        experiment, *backend, Learner::Options{static_cast<int>(rank), batch, data, [] {}}));
    simulation.memories.push_back(ranks.back().get());
  }
  simulate(simulation);
  return ranks.front()->rows();
}

namespace {

struct Options {
  std::string scenario, output, memory_limit;
  std::vector<std::string> settings;
  int processes = 0;
};

/// A point of the scenario, with the number of steps that its training variants.
struct LearningPoint {
  std::string name;
  Experiment experiment;
  std::int64_t batch = 1;  ///< samples per forward and backward pass
};

/// @param steps  the number of steps to try first; the right number is known only after the experiment is
/// built
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
        fmt::format("{}: learning: the command learn needs this key (docs/how-to/learn-loss-against-time.md)",
                    scenario.file.string()));
  const std::string why = compresses_gradients(scenario, point)
                              ? "compressed gradients are supported in real runs only (stepcast validate)"
                              : unsupported_simulated_learning(experiment);
  if (!why.empty())
    throw InputError(fmt::format("{}: point {} cannot learn in a simulation: {}", scenario.file.string(),
                                 point.name, why));
  if (learning_steps(experiment) != experiment.steps) experiment = built(learning_steps(experiment));
  return {point.name, std::move(experiment), samples_of_pass(scenario, point)};
}

std::vector<LearningPoint> learning_points(const Scenario& scenario) {
  if (!scenario.calibrations.empty())
    throw InputError(fmt::format("{}: calibrate: not supported by learn; set the calibrated keys with --set",
                                 scenario.file.string()));
  Library library;
  std::vector<LearningPoint> points;
  for (const Point& point : scenario.points) {
    const std::int64_t steps =
        points.empty() ? 1 : points.back().experiment.steps;  // mostly equal for all points
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

Table learning_table(const std::vector<LearnedPoint>& points) {
  Table table;
  table.columns = {{"point", "", Align::left, 70},
                   {"mini-batches", "of a worker"},
                   {"time"},
                   {"loss"},
                   {"accuracy", "%"},
                   {"time to", fmt::format("loss {:.3g}", points.front().common_loss)}};
  for (const LearnedPoint& one : points) {
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
  const FolderLock lock(folder);
  const Results learning = learned(scenario, points, options.processes);
  write_atomically(folder / "learning.csv", to_csv(learning));
  fmt::print("{}: {} learns on {}, in the time of the simulated cluster\n{}", scenario.name,
             points.front().experiment.model.name, points.front().experiment.platform.name,
             to_string(learning_table(learned_points(learning))));
  CurvePlot plot = loss_curves(learning);
  plot.time = "seconds of the simulated cluster";
  if (const auto script = curve_script(plot)) {
    if (const auto complaint = draw_plot(folder, "loss-vs-time", *script)) fmt::print("{}\n", *complaint);
  }
  fmt::print("written: {}\n", folder.string());
}

}  // namespace

void add_learn(Command app) {
  const Command command = app.add_subcommand(
      "learn",
      "Train a network on the clock of a simulated cluster, and write loss and accuracy against time.");
  auto options = std::make_shared<Options>();
  command.add_option("scenario", options->scenario, "Scenario file with the key learning.")
      .required()
      .type_name("SCENARIO.yaml");
  command
      .add_option("-o,--output", options->output, "Folder for the results. Default: results/SCENARIO-NAME.")
      .type_name("DIR");
  command
      .add_option("-j,--jobs", options->processes,
                  "Number of points that are trained at the same time. Default: the number of cores.")
      .range(1, 4096);
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
  command.callback([options] {
    if (options->processes == 0)
      options->processes = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    learn(*options);
  });
}

}  // namespace stepcast
