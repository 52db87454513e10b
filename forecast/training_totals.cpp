#include "forecast/simulate_point.hpp"
#include "models/work/model_flops.hpp"

namespace stepcast {
namespace {

/// Sets the units of language models. The share of the peak needs a precision, which measured layer times do
/// not name.
void set_token_columns(Row& row, const Experiment& experiment, double samples_per_second) {
  const std::int64_t tokens = tokens_of_sample(experiment.model);
  if (tokens == 0) return;
  const double rate = tokens * samples_per_second;
  row.set("tokens_per_second", rate);
  row.set("tokens_per_second_per_device", rate / experiment.plan.devices);
  const double of_device = samples_per_second / experiment.plan.devices;
  const double flops = training_flops(experiment.model).value * of_device;
  row.set("model_flops_per_device", flops);
  if (!experiment.plan.trace_kind.starts_with("derived")) return;
  row.set("mfu", flops / experiment.device.peak.value);
  if (const Flops palm = palm_flops(experiment.model); palm.value > 0)
    row.set("mfu_palm", palm.value * of_device / experiment.device.peak.value);
}

}  // namespace

void set_totals(Row& row, const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const double rate = plan.samples_a_step / *row.number("step_seconds");
  row.set("samples_per_second", rate);
  set_token_columns(row, experiment, rate);
  if (knows_sizes(experiment.model) || !plan.fits) {  // what is known may be too large alone
    row.set("memory_bytes", plan.memory.total().value);
    row.set("fits", plan.fits);
  }
  if (!plan.fits && !plan.why_not.empty()) row.set("why_not", plan.why_not);
  if (experiment.epoch_samples == 0) return;
  const double epoch = experiment.epoch_samples / rate;
  row.set("epoch_seconds", epoch);
  if (experiment.epochs == 0) return;
  const double hours = epoch * experiment.epochs / 3600;
  row.set("training_hours", hours);
  if (experiment.device.watts > 0)
    row.set("energy_kwh", hours * plan.devices * experiment.device.watts / 1000);
  if (experiment.platform.price_per_device_hour > 0) {
    row.set("cost_usd", hours * plan.devices * experiment.platform.price_per_device_hour);
  }
}

}  // namespace stepcast
