#include "commands/validate/freeze_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "commands/learn/learning_points.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/simulate_point.hpp"
#include "kernels/timing/host_info.hpp"
#include "models/layer_times/trace_text.hpp"
#include "report/results/results.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/plan/plan.hpp"
#include "validate/capture/arithmetic_times.hpp"
#include "validate/capture/message_times.hpp"
#include "validate/measure/link_benchmark.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {
namespace {

void write_platform(const LinkMeasurements& links, const Cluster& cluster,
                    const std::filesystem::path& folder) {
  Cluster measured = cluster;
  for (const LinkMeasurement& one : links) {
    if (one.ranks > 0) measured.ranks = one.ranks;
  }
  MeasuredPlatform platform{
      "measured", fmt::format("stepcast validate --ranks {} on {}", measured.ranks, processor_name()),
      cluster, measured_link_table(links, measured)};
  platform.storage = measured_storage(links, cluster.several_nodes() ? 1 : measured.ranks);
  // One thread measured the links. In a run each message wakes the progress thread, which wakes the program.
  platform.links.latency.value += contention_of(links).hand_over;
  write_atomically(platform_file(folder), platform_text(platform));
}

/// Steps that a forecast simulates where the run does not set them. Asynchronous workers that start together
/// drift apart by the jitter of their steps, until they use the links at different times. That takes hundreds
/// of steps. Noise that differs from step to step needs many steps for its mean.
constexpr int kStepsToSteadyState = 1000, kStepsOfNoise = 500;

/// The trace of pipeline stages with the time that sending and receiving messages takes on the computing
/// cores.
std::string stage_trace(const Experiment& experiment, const LinkMeasurements& links,
                        const std::filesystem::path& trace_file, std::size_t index, Library& library) {
  const Trace whole = library.trace(YamlValue(command_line_name(trace_file.string()), "trace"));
  const Trace with = with_messages(whole, experiment.model, experiment.plan.partition,
                                   [&links](Bytes size) { return message_host_time(links, size); });
  const auto file =
      trace_file.parent_path() / fmt::format("{}-stages{}.yaml", trace_file.stem().string(), index + 1);
  write_atomically(file, to_yaml(with));
  return file.string();
}

/// Writes the algorithms of all points with `all_reduce: automatic`, which the ranks read after the forecast.
void write_all_reduces(const std::vector<Results>& of_points, const std::string& scenario,
                       const std::filesystem::path& folder) {
  Results all{scenario, {}};
  for (const Results& one : of_points) all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
  write_atomically(all_reduce_file(folder), to_csv(all));
}

/// One simulation of a point.
struct PointSimulation {
  std::size_t point;
  Experiment experiment;
};

/// Adds a simulation and, for asynchronous workers, the same with other start dates. For hundreds of
/// steps the start dates decide which messages meet on a link, and a real run has only one of many possible
/// sets of start dates. So the forecast is the mean over several sets, with the same noise.
void add_start_variants(const PointSimulation& one, std::vector<PointSimulation>& all) {
  constexpr int kStarts = 12;
  const bool several = one.experiment.plan.asynchronous && one.experiment.noise.start_spread > 0;
  all.push_back(one);
  for (int i = 0; several && i < kStarts; ++i) {
    all.push_back(one);
    all.back().experiment.noise.start_spread *= 0.5 + (i + 0.5) / kStarts;
  }
}

/// The result of a simulation, followed by the algorithms that it chose for all-reduces.
std::string simulated(const PointSimulation& one, const std::string& point, StepStatistic statistic) {
  AllReduceChoices automatic;
  Results results{"prediction", {simulate_point(one.experiment, &automatic, statistic)}};
  for (Row& row : all_reduce_rows(point, one.experiment.plan, automatic))
    results.rows.push_back(std::move(row));
  return to_json_lines(results);
}

/// One row per point: the row with the unchanged start dates, with the mean step time over all start dates.
std::vector<Row> means_over_starts(const std::vector<PointSimulation>& simulations,
                                   const std::vector<Row>& rows) {
  std::vector<Row> points;
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    double sum = 0;
    for (; end < rows.size() && simulations[end].point == simulations[begin].point; ++end)
      sum += rows[end].number("step_seconds").value_or(0);
    points.push_back(rows[begin]);
    points.back().set("step_seconds", sum / (end - begin));
  }
  return points;
}

/// MPI's own all-reduce takes the times of MPI's messages, which only ranks that use them measure.
std::string unsupported_transport(const Plan& plan, const Cluster& cluster) {
  const bool by_mpi = std::ranges::any_of(plan.collectives, [&plan](const Collective& one) {
    return one.kind == Collective::Kind::all_reduce &&
           communicator_of(plan, one).all_reduce.algorithm == Algorithm::mpi;
  });
  return by_mpi && cluster.transport != TransportKind::mpi ? "all_reduce: mpi needs --transport mpi" : "";
}

std::string unsupported_reason(const Experiment& experiment, const ValidationOptions& options,
                               const Cluster& cluster) {
  std::string why = unsupported_in_real_run(experiment.plan, cluster.ranks, options.sleep);
  if (why.empty()) why = unsupported_transport(experiment.plan, cluster);
  if (why.empty()) why = unsupported_noise(experiment.noise, options.sleep);
  if (!why.empty() || !experiment.learning) return why;
  if (options.sleep) return "learning: not possible with --sleep, because sleeping ranks do not compute";
  return unsupported_real_learning(experiment);
}

void refuse_unsupported(const Experiment& experiment, const ValidationOptions& options,
                        const Cluster& cluster, const std::string& point) {
  const std::string why = unsupported_reason(experiment, options, cluster);
  if (!why.empty())
    throw InputError(fmt::format("{}: point {} cannot be run for real: {}", options.scenario, point, why));
}

/// Times that were measured before the forecast.
struct Measured {
  bool on_gpus;              ///< the ranks wrote the platform themselves
  LinkMeasurements links;    ///< empty on GPUs
  double compute_slowdown;   ///< by communication during computing; 1 for sleeping ranks and on GPUs
  double load_slowdown = 1;  ///< of compute while input loads
};

/// Ranks on cores measure links anew for each forecast, and the platform is written from them; ranks on GPUs
/// write the platform and no links.
Measured read_measured(const Cluster& cluster, const std::filesystem::path& folder, bool sleep) {
  if (!std::filesystem::exists(links_file(folder)) && std::filesystem::exists(platform_file(folder)))
    return {true, {}, 1};
  Measured measured{false, read_link_measurements(links_file(folder)), 1};
  write_platform(measured.links, cluster, folder);
  if (!sleep) measured.compute_slowdown = contention_of(measured.links).compute_slowdown;
  measured.load_slowdown = load_slowdown(measured.links);
  return measured;
}

/// Inputs of the forecast of a validation.
struct ForecastInputs {
  const Validation& validation;
  const ValidationOptions& options;
  const std::filesystem::path& folder;
  const Measured& measured;
  Library& library;
};

/// The experiment of a point with all measured times.
/// @param last  of the run, such as its seeds
Experiment experiment_of(const ForecastInputs& inputs, std::size_t point, Overrides last = {}) {
  const Validation& validation = inputs.validation;
  const Measured& measured = inputs.measured;
  last.measured.compute_slowdown = measured.compute_slowdown;
  last.measured.message_slowdown = message_slowdown(measured.compute_slowdown);
  last.measured.load_slowdown = measured.load_slowdown;
  // Sleeping ranks draw the same noise as the simulation, so the forecast is that of one run, not of the
  // mean.
  const auto forecast = [&] {
    return measured_experiment(validation, point, inputs.folder, last, inputs.library);
  };
  if (!inputs.options.sleep) {
    const std::string network = trace_file("", validation.variants[point]).stem().string();
    last.measured.arithmetic = [&links = measured.links, network](const std::string& name) {
      return arithmetic_time(links, network, name);
    };
    const Experiment& unmeasured = validation.unmeasured[point];
    if (!measured.on_gpus && unmeasured.plan.partition.form == ModelPartition::Form::stages)
      last.trace = stage_trace(forecast(), measured.links,
                               trace_file(inputs.folder, validation.variants[point]), point, inputs.library);
    if (unmeasured.plan.asynchronous) {
      last.steps = last.steps.value_or(kStepsToSteadyState);
      last.jitter = Noise::Jitter::trace;
    } else if (unmeasured.noise.jitter != Noise::Jitter::none) {
      last.steps = last.steps.value_or(kStepsOfNoise);
    }
  }
  return forecast();
}

}  // namespace

void check_points(const Validation& validation, const ValidationOptions& options, const Cluster& cluster,
                  const std::optional<LearningLimits>& limits) {
  for (std::size_t i = 0; i < validation.points.size(); ++i)
    refuse_unsupported(validation.unmeasured[i], options, cluster, validation.point(i).name);
  if (!limits) return;
  Library library;
  const YamlNode platform = placeholder_platform(cluster);
  const MeasuredExperiment unmeasured = [&](std::size_t point, const Overrides& last) {
    return unmeasured_experiment(validation, point, platform, last, library);
  };
  check_learning_forecast(validation, validation.unmeasured, unmeasured, *limits);
}

std::vector<std::string> measured_files(const Validation& validation) {
  std::set<std::string> names{links_file("").string()};
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const NetworkVariant& variant = validation.variants[i];
    names.insert(trace_file("", variant).string());
    if (const std::string& parts = validation.partitions[i]; !parts.empty())
      names.insert(shard_trace_file("", variant, parts).string());
    if (validation.plan(i).compresses) names.insert(compression_file("", variant.model).string());
  }
  return {names.begin(), names.end()};
}

void check_earlier(const Validation& validation, const std::filesystem::path& earlier) {
  for (const std::string& name : measured_files(validation)) {
    if (!std::filesystem::exists(earlier / name))
      throw InputError(
          fmt::format("--measured-in: expected the folder of a validation with the same networks and "
                      "batches, but {} is missing",
                      (earlier / name).string()));
  }
}

void use_earlier(const Validation& validation, const std::filesystem::path& earlier,
                 const std::filesystem::path& folder) {
  for (const std::string& name : measured_files(validation))
    write_atomically(folder / name, read_file(earlier / name));
}

RealForecast predict_real(const Validation& validation, const ValidationOptions& options,
                          const Cluster& cluster, const std::filesystem::path& folder,
                          const ForecastProcesses& processes) {
  const Measured measured = read_measured(cluster, folder, options.sleep);
  Library library;
  const ForecastInputs inputs{validation, options, folder, measured, library};
  std::vector<Experiment> points;
  std::vector<PointSimulation> simulations;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    points.push_back(experiment_of(inputs, i));
    refuse_unsupported(points.back(), options, cluster, validation.point(i).name);
    add_start_variants({i, points.back()}, simulations);
  }
  std::vector<Task> tasks;
  for (const PointSimulation& one : simulations) {
    tasks.push_back([&one, &name = validation.point(one.point).name, statistic = step_statistic(options)] {
      return simulated(one, name, statistic);
    });
  }
  std::vector<Row> rows(tasks.size());
  std::vector<Results> all_reduces(validation.points.size());
  run_tasks(
      tasks, processes.number,
      [&](std::size_t i, const std::string& text) {
        const std::size_t point = simulations[i].point;
        Results read = read_json_lines(text, "a simulation");
        rows[i] = with_first("point", validation.point(point).name, read.rows.at(0));
        read.rows.erase(read.rows.begin());
        all_reduces[point] = std::move(read);  // the same with all start dates
      },
      processes.meanwhile);
  write_all_reduces(all_reduces, validation.scenario.name, folder);
  RealForecast forecast{{validation.scenario.name, means_over_starts(simulations, rows)}, {}};
  const MeasuredExperiment experiment = [&inputs](std::size_t point, const Overrides& last) {
    return experiment_of(inputs, point, last);
  };
  if (!measured.on_gpus && !options.sleep)
    forecast.learning =
        learning_forecast(validation, points, experiment, processes.number, processes.meanwhile);
  return forecast;
}

namespace {

/// The rows of a training as JSON lines.
std::string learned_lines(const Experiment& experiment, std::int64_t batch, const std::string& point,
                          std::int64_t seed) {
  Results learned{"learning", {}};
  for (EvaluatedLoss& one : simulate_learning(experiment, batch).evaluations) {
    one.point = point;
    one.seed = seed;
    learned.rows.push_back(to_row(one));
  }
  return to_json_lines(learned);
}

std::optional<double> target_loss(const std::vector<Experiment>& points) {
  for (const Experiment& point : points) {
    if (point.learning && point.learning->target_loss) return point.learning->target_loss;
  }
  return std::nullopt;
}

}  // namespace

void check_learning_forecast(const Validation& validation, const std::vector<Experiment>& points,
                             const MeasuredExperiment& experiment, const LearningLimits& limits) {
  if (!target_loss(points)) return;
  std::vector<LearningRun> runs;
  std::vector<std::size_t> point_of;  // of each training
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::int64_t seed = 1; points[i].learning && seed <= points[i].learning->seeds; ++seed) {
      runs.push_back({validation.point(i).name, seed, points[i], validation.variants[i].batch});
      point_of.push_back(i);
    }
  }
  const CutTraining cut = [&](std::size_t run, std::int64_t mini_batches) {
    const int length = mini_batches;
    Overrides of_training =
        learning_overrides(experiment(point_of[run], Overrides{.mini_batches = length}), 1);
    of_training.mini_batches = length;
    return LearningRun{runs[run].point, 1, experiment(point_of[run], of_training), runs[run].batch};
  };
  check_learning_limits(runs, cut, limits);
}

LearningForecast learning_forecast(const Validation& validation, const std::vector<Experiment>& points,
                                   const MeasuredExperiment& experiment, int processes,
                                   const std::function<void()>& meanwhile) {
  LearningForecast forecast{{validation.scenario.name, {}}, target_loss(points)};
  if (!forecast.target_loss) return forecast;
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::int64_t seed = 1; points[i].learning && seed <= points[i].learning->seeds; ++seed) {
      tasks.push_back([&, i, seed] {
        return learned_lines(experiment(i, learning_overrides(points[i], seed)), validation.variants[i].batch,
                             validation.point(i).name, seed);
      });
    }
  }
  std::vector<std::vector<Row>> rows(tasks.size());
  run_tasks(
      tasks, processes,
      [&](std::size_t task, const std::string& text) {
        rows[task] = read_json_lines(text, "a training").rows;
      },
      meanwhile);
  for (std::vector<Row>& of_training : rows)
    std::ranges::move(of_training, std::back_inserter(forecast.rows.rows));
  return forecast;
}

}  // namespace stepcast
