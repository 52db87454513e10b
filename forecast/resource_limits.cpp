#include "forecast/resource_limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/os/process.hpp"
#include "core/text.hpp"
#include "forecast/fit_calibration.hpp"
#include "forecast/forecast.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/simulate_point.hpp"
#include "report/text/display_text.hpp"
#include "sim/collectives/planned_collectives.hpp"
#include "sim/fidelity/fidelity_rule.hpp"

namespace stepcast {
namespace {

/// Memory of an empty process, and the memory that a simulation, a worker and a link add; a link that SimGrid
/// knows needs more. Measured with Debian 12's SimGrid 3.32 (docs/explanation/performance.md).
constexpr double kProcessBytes = 48e6, kBytesPerSimulation = 2.5e6, kBytesPerWorker = 3000,
                 kBytesPerLink = 24, kBytesPerSimGridLink = 1500;

/// A process frees memory after its start, which the first workers use. Each further worker takes more than
/// kBytesPerWorker: without folding, when it has a program of its own, and with folding.
constexpr double kFirstWorkers = 4096, kBytesPerUnfoldedWorker = 9500, kBytesPerFoldedWorker = 2000;

/// In a run with servers: memory per worker and server for a message in flight and the routes in both
/// directions; and memory per update for its records (four numbers, in lists whose capacity doubles: up to
/// twice their content, and one list once more while it grows).
constexpr double kBytesPerPair = 1000, kBytesPerUpdate = 72;

/// Memory for the messages and records of workers and servers [B].
double server_bytes(const Experiment& experiment) {
  double trainers = 0, servers = 0;
  for (const Role& role : experiment.plan.roles) (role.training ? trainers : servers) += role.members;
  return trainers * servers * (kBytesPerPair + experiment.steps * kBytesPerUpdate);
}

Bytes memory_limit(const std::string& text) {
  if (text.empty()) return 0.8 * machine_memory();
  const auto bytes = parse_quantity(text, Dimension::bytes);
  if (!bytes || *bytes <= 0) {
    throw InputError(fmt::format("--memory-limit: expected a size such as \"8 GiB\", got \"{}\"{}",
                                 printable(text), quantity_advice(text, Dimension::bytes)));
  }
  return {*bytes};
}

}  // namespace

Bytes simulated_memory(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const auto& communicators = plan.communicators;
  const bool flows = plan.asynchronous
                         ? !uses_bottleneck_sharing(plan, experiment.fidelity)
                         : experiment.fidelity == Fidelity::message ||
                               experiment.fidelity == Fidelity::fluid || communicators.size() > 1 ||
                               (!communicators.empty() && communicators.front().streams > 1);
  const bool simgrid = flows && experiment.link_sharing == LinkSharing::simgrid;
  const double links = experiment.bandwidths.size();
  const double more = experiment.fold == Folding::never ? kBytesPerUnfoldedWorker : kBytesPerFoldedWorker;
  return {kBytesPerSimulation + kBytesPerWorker * plan.workers +
          more * std::max(plan.workers - kFirstWorkers, 0.0) +
          links * (kBytesPerLink + (simgrid ? kBytesPerSimGridLink : 0)) +
          (plan.asynchronous ? server_bytes(experiment) : 0)};
}

RunSize run_size(const Experiment& largest, std::size_t points, int simulations) {
  RunSize size;
  size.points = points;
  size.simulations = static_cast<double>(points) * simulations;
  size.workers = largest.plan.workers;
  size.process_memory = Bytes{kProcessBytes} + simulated_memory(largest);
  return size;
}

std::string to_string(const RunSize& size, const std::string& scenario) {
  return fmt::format("{}: {} points, {} simulations, up to {} workers, about {} a process", scenario,
                     size.points, size.simulations, size.workers, human(size.process_memory));
}

void check_limits(const RunSize& size, const RunLimits& limits) {
  check_process_memory(size.process_memory, limits.processes, limits.memory_limit);
}

void check_process_memory(Bytes each, int processes, const std::string& limit_text) {
  const Bytes limit = memory_limit(limit_text), needed = processes * each;
  if (needed <= limit) return;
  const int fit = static_cast<int>(limit / each);
  const std::string way_out = fit >= 1 ? fmt::format("use -j {} or raise --memory-limit", fit)
                                       : "raise --memory-limit or simulate fewer workers";
  throw LimitError(fmt::format("{} process{} of about {} need{} {}, over the limit of {}: {}", processes,
                               processes == 1 ? "" : "es", human(each), processes == 1 ? "s" : "",
                               human(needed), human(limit), way_out));
}

Seconds time_limit(const std::string& text) {
  if (text.empty()) return {3600};
  const auto seconds = parse_quantity(text, Dimension::time);
  if (!seconds || *seconds <= 0)
    throw InputError(fmt::format("--time-limit: expected a time such as \"2 h\", got \"{}\"{}",
                                 printable(text), quantity_advice(text, Dimension::time)));
  return {*seconds};
}

double children_seconds() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) { return time.tv_sec + 1e-6 * time.tv_usec; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

namespace {

constexpr std::size_t kMaxTriedPoints = 8;

/// Chooses at most kMaxTriedPoints points, evenly spread, among them the first and the last.
std::vector<std::size_t> tried_points(const std::vector<std::size_t>& points) {
  if (points.size() <= kMaxTriedPoints) return points;
  std::vector<std::size_t> tried;
  for (std::size_t i = 0; i < kMaxTriedPoints; ++i)
    tried.push_back(points[i * (points.size() - 1) / (kMaxTriedPoints - 1)]);
  return tried;
}

}  // namespace

Seconds estimated_time(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                       int draws, double simulations) {
  if (points.empty()) return {};
  const std::vector<double> middle(scenario.assumptions.size(), 0.5);
  const double begun = children_seconds();
  const std::vector<double> calibrated =
      calibrated_draw(scenario, middle, in_own_process(scenario, library)).values;
  const double after_calibration = children_seconds();
  const std::vector<std::size_t> tried = tried_points(points);
  std::vector<Task> tasks;
  for (const std::size_t point : tried) {
    tasks.push_back([&, point] {
      const auto values = values_of(scenario, scenario.points[point].values, middle, calibrated);
      simulate_point(build_experiment(scenario.document, values, library));
      return std::string();
    });
  }
  run_tasks(tasks, 1, [](std::size_t, const std::string&) {});
  const double per_point = (children_seconds() - after_calibration) / tried.size();
  return {draws * (after_calibration - begun) + simulations * per_point};
}

Seconds expected_time(const Experiment& largest, const RunSize& size) {
  constexpr int kFewWorkers = 32;
  if (largest.noise.is_none() || largest.plan.workers < kFewWorkers) return {};
  double seconds = 0;
  const Task estimate = [&] {  // in a child, because the choice of a fidelity may simulate samples
    const Simulation simulation = simulation_of(largest);
    const Topology topology(largest.platform);
    const CollectiveSchedules schedules(simulation, topology);
    const PlannedCollectives collectives(schedules, ComputeBudget::small);
    const CollectiveLoad traffic = collectives.traffic();
    return fmt::format("{}", run_cost(traffic, collectives.fidelity()).seconds + program_seconds(traffic));
  };
  run_tasks({estimate}, 1, [&](std::size_t, const std::string& text) { seconds = std::stod(text); });
  return size.simulations * Seconds{seconds};
}

std::string time_text(Seconds processor_time, int processes) {
  return fmt::format("some {} of processor time, {} with {} process{}", human(processor_time),
                     human((1.0 / processes) * processor_time), processes, processes == 1 ? "" : "es");
}

namespace {

/// Synchronous runs whose fidelity is chosen by the rule are not estimated if their compute budget is below
/// this [s].
constexpr double kNegligibleSeconds = 600;

}  // namespace

SimulationCost simulation_cost(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const bool cheap = experiment.fidelity == Fidelity::automatic || experiment.fidelity == Fidelity::coupled;
  if (!plan.asynchronous && cheap &&
      std::max(experiment.steps * kSmallBudgetPerStep, kLargeBudgetPerRun) < kNegligibleSeconds)
    return {};
  const Simulation simulation = simulation_of(experiment);
  const Topology topology(experiment.platform);
  const CollectiveSchedules schedules(simulation, topology);
  const PlannedCollectives collectives(schedules, ComputeBudget::small);
  const RunCost cost = run_cost(collectives.traffic(), collectives.fidelity());
  return {cost.flows, {cost.seconds}};
}

void check_time(const Experiment& largest, const RunSize& size, const RunLimits& limits) {
  const Seconds limit = time_limit(limits.time_limit);
  const auto [messages, one] = simulation_cost(largest);
  const double simulations = size.simulations / size.points;
  const double at_once = std::clamp<double>(limits.processes, 1, simulations);
  const Seconds needed = simulations / at_once * one;
  if (needed <= limit) return;
  const bool cheap = largest.fidelity == Fidelity::automatic;
  throw LimitError(fmt::format(
      "the largest point ({} workers) needs {} simulations of {:.3g} messages or flows each with "
      "simulation.fidelity: {}, about {:.1f} h with {} processes, over the limit of {:.3g} h: use {}fewer "
      "workers or "
      "steps, or raise --time-limit",
      largest.plan.workers, simulations, messages, fidelity_words().of(largest.fidelity), needed.value / 3600,
      at_once, limit.value / 3600, cheap ? "" : "fidelity: automatic, "));
}

}  // namespace stepcast
