#include "commands/simulate_point.hpp"

#include <fmt/format.h>

#include <cmath>

#include "commands/training_columns.hpp"
#include "report/statistics.hpp"
#include "sim/record_book.hpp"

namespace stepcast {
namespace {

/// Column of all steps but the first, which waits for the first batch, where there are others.
std::vector<double> column(const std::vector<StepSeconds>& steps, double StepSeconds::*field) {
  std::vector<double> values;
  for (std::size_t i = steps.size() > 1 ? 1 : 0; i < steps.size(); ++i) values.push_back(steps[i].*field);
  return values;
}

void set_times(Row& row, const std::vector<StepSeconds>& steps) {
  const auto seconds = column(steps, &StepSeconds::seconds);
  row.set("step_seconds", quantile(seconds, 0.5));
  row.set("step_seconds_mean", mean(seconds));
  row.set("step_seconds_p10", quantile(seconds, 0.1));
  row.set("step_seconds_p90", quantile(seconds, 0.9));
  row.set("compute_seconds", mean(column(steps, &StepSeconds::compute)));
  // The slowest less the mean: of equal workers only rounding is left, of either sign.
  const double waiting = mean(column(steps, &StepSeconds::straggler));
  row.set("waiting_seconds", std::abs(waiting) < 1e-12 * *row.number("compute_seconds") ? 0 : waiting);
  row.set("data_loading_seconds", mean(column(steps, &StepSeconds::loading)));
  row.set("exposed_communication_seconds", mean(column(steps, &StepSeconds::exposed)));
  row.set("communication_seconds", mean(column(steps, &StepSeconds::communication)));
}

void set_totals(Row& row, const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const double rate = plan.samples_a_step / *row.number("step_seconds");
  row.set("samples_per_second", rate);
  row.set("memory_bytes", plan.memory.total().value);
  row.set("fits", plan.fits);
  if (!plan.fits && !plan.why_not.empty()) row.set("why_not", plan.why_not);
  if (experiment.epoch_samples == 0) return;
  const double epoch = experiment.epoch_samples / rate;
  row.set("epoch_seconds", epoch);
  if (experiment.epochs == 0) return;
  const double hours = epoch * experiment.epochs / 3600;
  row.set("training_hours", hours);
  if (experiment.platform.price_per_device_hour > 0) {
    row.set("cost_usd", hours * plan.devices * experiment.platform.price_per_device_hour);
  }
}

std::string joined(const IdleKeys& idle) {
  std::string all;
  for (const IdleKey& one : idle) all += (all.empty() ? "" : "; ") + to_string(one);
  return all;
}

}  // namespace

Simulation simulation_of(const Experiment& experiment, Doubled doubled) {
  Simulation simulation;
  simulation.platform = &experiment.platform;
  simulation.bandwidths = experiment.bandwidths;
  simulation.plan = &experiment.plan;
  simulation.noise = experiment.noise;
  simulation.seed = experiment.seed;
  simulation.form = experiment.form;
  simulation.fold = experiment.fold;
  if (doubled == Doubled::compute) simulation.compute_factor = 0.5;
  if (doubled == Doubled::latency) simulation.latency_factor = 0.5;
  if (doubled == Doubled::bandwidth) simulation.bandwidths.multiply_all(2);
  return simulation;
}

const char* to_string(Doubled resource) {
  switch (resource) {
    case Doubled::none:
      return "nothing";
    case Doubled::compute:
      return "compute speed";
    case Doubled::bandwidth:
      return "bandwidth";
    case Doubled::latency:
      return "latency";
  }
  return "";
}

Row simulate_point(const Experiment& experiment, Doubled doubled, Timeline* timeline) {
  const Plan& plan = experiment.plan;
  Simulation simulation = simulation_of(experiment, doubled);
  simulation.timeline = timeline != nullptr;
  SimulationResult result = simulate(simulation);
  if (timeline != nullptr) *timeline = std::move(result.timeline);

  Row row;
  row.set("strategy", experiment.strategy);
  row.set("workers", std::int64_t{plan.workers});
  row.set("devices", std::int64_t{plan.devices});
  row.set("batch_per_worker", plan.batch_per_worker);
  row.set("global_batch", static_cast<std::int64_t>(plan.samples_a_step));
  set_times(row, result.steps);
  set_totals(row, experiment);
  if (plan.figures) {
    Records records = std::move(result.records);
    if (plan.asynchronous) records = first_records(std::move(records), result.steady_counts);
    for (const auto& [column, value] : plan.figures(records, *row.number("step_seconds")))
      row.set(column, value);
  }
  if (doubled == Doubled::none) set_training_columns(row, experiment);
  row.set("communication_form", result.form);
  row.set("folding", result.folding);
  row.set("all_reduce", result.algorithms);
  row.set("trace_kind", plan.trace_kind);
  if (!plan.flags.empty()) row.set("trace_flags", fmt::format("{}", fmt::join(plan.flags, "; ")));
  if (!plan.idle_keys.empty()) row.set("without_effect", joined(plan.idle_keys));
  return row;
}

}  // namespace stepcast
