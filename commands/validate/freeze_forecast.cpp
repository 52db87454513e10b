#include "commands/validate/freeze_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

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
#include "strategies/local_sgd/block_plan.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/plan.hpp"
#include "validate/capture/arithmetic_times.hpp"
#include "validate/capture/message_times.hpp"
#include "validate/measure/link_benchmark.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {
namespace {

Results measured_links(const std::filesystem::path& folder) {
  const auto file = links_file(folder);
  return read_json_lines(read_file(file), file.string());
}

void write_platform(const Results& links, const Cluster& cluster, const std::filesystem::path& folder) {
  Cluster measured = cluster;
  for (const Row& row : links.rows)
    measured.ranks = static_cast<int>(row.number("ranks").value_or(measured.ranks));
  MeasuredPlatform platform{
      "measured", fmt::format("stepcast validate --ranks {} on {}", measured.ranks, processor_name()),
      cluster, measured_link_table(links, measured)};
  platform.storage = measured_storage(links, cluster.several_nodes() ? 1 : measured.ranks);
  // One thread measured the links. In a run each message wakes the progress thread, which wakes the program.
  platform.links.latency.value += contention_of(links).hand_over;
  write_atomically(platform_file(folder), platform_text(platform));
}

/// Asynchronous workers that start together drift apart by the jitter of their steps, until they use the
/// links at different times. That takes hundreds of steps, so the forecast simulates 1,000 with the jitter of
/// the trace.
void add_steady_state(std::vector<Assignment>& keys) {
  keys.push_back(parse_assignment("simulation.steps=1000"));
  keys.push_back(parse_assignment("noise.jitter=trace"));
}

/// Noise that differs from step to step needs many steps for its mean.
void add_many_steps(std::vector<Assignment>& keys) {
  keys.push_back(parse_assignment("simulation.steps=500"));
}

/// The trace of pipeline stages with the time that sending and receiving messages takes on the computing
/// cores.
Assignment stage_trace(const Experiment& experiment, const Results& links,
                       const std::filesystem::path& trace_file, std::size_t index, Library& library) {
  const Trace whole = library.trace(YamlValue(command_line_name(trace_file.string()), "trace"));
  const Trace with = with_messages(whole, experiment.model, experiment.plan.partition,
                                   [&links](Bytes size) { return message_host_time(links, size); });
  const auto file =
      trace_file.parent_path() / fmt::format("{}-stages{}.yaml", trace_file.stem().string(), index + 1);
  write_atomically(file, to_yaml(with));
  return parse_assignment("trace=" + file.string());
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
    points.back().set("step_seconds", sum / static_cast<double>(end - begin));
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
  return unsupported_learning(experiment);
}

void refuse_unsupported(const Experiment& experiment, const ValidationOptions& options,
                        const Cluster& cluster, const std::string& point) {
  const std::string why = unsupported_reason(experiment, options, cluster);
  if (!why.empty())
    throw InputError(fmt::format("{}: point {} cannot be run for real: {}", options.scenario, point, why));
}

/// Keys of an experiment whose plan is that of the real run, before anything is measured. The times in the
/// plan mean nothing.
std::vector<Assignment> unmeasured_keys(const Validation& validation, std::size_t index,
                                        const std::filesystem::path& platform) {
  std::vector<Assignment> keys{parse_assignment("trace=derived"),
                               parse_assignment("platform=" + platform.string())};
  if (validation.compresses[index]) keys.push_back(parse_assignment("compression_times=cpu"));
  return keys;
}

/// Times that were measured before the forecast.
struct Measured {
  bool on_gpus;              ///< the ranks wrote the platform themselves
  Results links;             ///< empty on GPUs
  double compute_slowdown;   ///< by communication during computing; 1 for sleeping ranks and on GPUs
  double load_slowdown = 1;  ///< of compute while input loads
};

/// Ranks on cores measure links anew for each forecast, and the platform is written from them; ranks on GPUs
/// write the platform and no links.
Measured read_measured(const Cluster& cluster, const std::filesystem::path& folder, bool sleep) {
  if (!std::filesystem::exists(links_file(folder)) && std::filesystem::exists(platform_file(folder)))
    return {true, {}, 1};
  Measured measured{false, measured_links(folder), 1};
  write_platform(measured.links, cluster, folder);
  if (!sleep) measured.compute_slowdown = contention_of(measured.links).compute_slowdown;
  measured.load_slowdown = load_slowdown(measured.links);
  return measured;
}

/// One key of a strategy for which a validation measures the time.
struct MeasuredKey {
  const char *kind, *arithmetic, *key;
};

constexpr std::array<MeasuredKey, 8> kMeasuredKeys{{
    {"model_averaging", "average", "filter_bandwidth"},
    {"bmuf", "filter", "filter_bandwidth"},
    {"diloco", "filter", "filter_bandwidth"},
    {"elastic_averaging", "elastic pull", "local_arrays"},
    {"elastic_averaging", "center move", "apply_time"},
    {"gradient_energy_matching", "energy matching", "local_arrays"},
    {"gradient_energy_matching", "center sum", "apply_time"},
    {"parameter_server", "server update", "apply_time"},
}};

/// The value of a key with which the forecast takes `seconds` for the arithmetic of all parameters.
std::string value_of(const MeasuredKey& key, Seconds seconds, const Experiment& experiment) {
  const std::string name = key.key;
  if (name == "apply_time") return shortest(seconds.value) + " s";
  if (name == "local_arrays")
    return shortest(std::min(1000.0, seconds / array_work(experiment.plan.workloads.front(), 1)));
  const double arrays = std::string(key.kind) == "model_averaging" ? kAverageArrays : kFilterArrays;
  return shortest(arrays * 4 * static_cast<double>(trainable_parameters(experiment.model)) / seconds.value) +
         " B/s";
}

/// The measured times of a strategy's arithmetic, for the keys that the point leaves to their defaults.
std::vector<Assignment> arithmetic_keys(const Validation& validation, std::size_t point,
                                        const Experiment& experiment, const Results& links) {
  const std::string trace = trace_file("", validation.variants[point]).stem().string();
  std::vector<Assignment> keys;
  for (const MeasuredKey& one : kMeasuredKeys) {
    if (strategy_value(validation, point, "kind") != one.kind ||
        !strategy_value(validation, point, one.key).empty() ||
        !strategy_value(validation, point, "apply_trace").empty())
      continue;
    const auto seconds = arithmetic_time(links, trace, one.arithmetic);
    if (seconds && seconds->value > 0)
      keys.push_back(
          parse_assignment(fmt::format("strategy.{}={}", one.key, value_of(one, *seconds, experiment))));
  }
  return keys;
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
/// @param last  settings that come after all others
Experiment experiment_of(const ForecastInputs& inputs, std::size_t point,
                         const std::vector<Assignment>& last = {}) {
  const Validation& validation = inputs.validation;
  const Measured& measured = inputs.measured;
  std::vector<Assignment> keys{
      parse_assignment("strategy.compute_slowdown=" + shortest(measured.compute_slowdown))};
  if (strategy_value(validation, point, "kind") == "parameter_server" &&
      strategy_value(validation, point, "overlap") == "true")
    keys.push_back(parse_assignment("strategy.message_slowdown=" +
                                    shortest(message_slowdown(measured.compute_slowdown))));
  if (validation.loads[point])
    keys.push_back(parse_assignment("data.compute_slowdown=" + shortest(measured.load_slowdown)));
  const auto forecast = [&] {
    return measured_experiment(validation, point, inputs.folder, keys, inputs.library);
  };
  Experiment one = forecast();
  // Sleeping ranks draw the same noise as the simulation, so the forecast is that of one run, not of the
  // mean.
  if (inputs.options.sleep) return one;
  const std::size_t common = keys.size();
  for (Assignment& key : arithmetic_keys(validation, point, one, measured.links))
    keys.push_back(std::move(key));
  if (!measured.on_gpus && one.plan.partition.form == ModelPartition::Form::stages)
    keys.push_back(stage_trace(one, measured.links, trace_file(inputs.folder, validation.variants[point]),
                               point, inputs.library));
  if (one.plan.asynchronous) {
    add_steady_state(keys);
  } else if (one.noise.jitter != Noise::Jitter::none) {
    add_many_steps(keys);
  }
  keys.insert(keys.end(), last.begin(), last.end());
  return keys.size() > common ? forecast() : std::move(one);
}

}  // namespace

std::vector<Experiment> check_points(const Validation& validation, const ValidationOptions& options,
                                     const Cluster& cluster, const std::optional<LearningLimits>& limits) {
  const WorkFolder folder;
  const std::filesystem::path platform = folder.path() / "platform.yaml";
  // Any device for which layer times can be derived serves.
  write_atomically(platform, platform_text({"unmeasured", "placeholder while points are checked", cluster,
                                            fitted_link_table({{{1}, {1e-6}}, {{1e6}, {1e-3}}}),
                                            "v100-sxm2-16gb", MeasuredStorage{{1e9}, {1e-4}}}));
  Library library;
  const MeasuredExperiment unmeasured = [&](std::size_t point, const std::vector<Assignment>& last) {
    std::vector<Assignment> keys = unmeasured_keys(validation, point, platform);
    keys.insert(keys.end(), last.begin(), last.end());
    return measured_experiment(validation, point, folder.path(), keys, library);
  };
  std::vector<Experiment> points;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    points.push_back(unmeasured(i, {}));
    refuse_unsupported(points.back(), options, cluster, validation.point(i).name);
  }
  if (limits) check_learning_forecast(validation, points, unmeasured, *limits);
  return points;
}

std::vector<std::string> measured_files(const Validation& validation) {
  std::set<std::string> names{links_file("").string()};
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const NetworkVariant& variant = validation.variants[i];
    names.insert(trace_file("", variant).string());
    if (const std::string& parts = validation.partitions[i]; !parts.empty())
      names.insert(shard_trace_file("", variant, parts).string());
    if (validation.compresses[i]) names.insert(compression_file("", variant.model).string());
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
                          const Cluster& cluster, const std::filesystem::path& folder, int processes,
                          const std::function<void()>& meanwhile) {
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
      tasks, processes,
      [&](std::size_t i, const std::string& text) {
        const std::size_t point = simulations[i].point;
        Results read = read_json_lines(text, "a simulation");
        rows[i] = with_first("point", validation.point(point).name, read.rows.at(0));
        read.rows.erase(read.rows.begin());
        all_reduces[point] = std::move(read);  // the same with all start dates
      },
      meanwhile);
  write_all_reduces(all_reduces, validation.scenario.name, folder);
  RealForecast forecast{{validation.scenario.name, means_over_starts(simulations, rows)}, {}};
  const MeasuredExperiment experiment = [&inputs](std::size_t point, const std::vector<Assignment>& last) {
    return experiment_of(inputs, point, last);
  };
  if (!measured.on_gpus && !options.sleep)
    forecast.learning = learning_forecast(validation, points, experiment, processes, meanwhile);
  return forecast;
}

}  // namespace stepcast
