#include "forecast/simulate_point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "campaigns/checkpoint_interval.hpp"
#include "sim/simulation.hpp"
#include "sim/workers/step_statistics.hpp"

namespace stepcast {

namespace {

/// A field of all steps but the first, which waits for the first batch; of the first step if there is no
/// other.
std::vector<double> column(const std::vector<StepSeconds>& steps, double StepSeconds::*field) {
  std::vector<double> values;
  for (std::size_t i = steps.size() > 1 ? 1 : 0; i < steps.size(); ++i) values.push_back(steps[i].*field);
  return values;
}

/// The step whose time is the median, or the mean of the two in the middle. Its parts add up to that time,
/// which the medians of the parts do not.
StepSeconds median_step(std::vector<StepSeconds> steps) {
  if (steps.size() > 1) steps.erase(steps.begin());
  std::ranges::stable_sort(steps, {}, &StepSeconds::seconds);
  const StepSeconds &one = steps[(steps.size() - 1) / 2], &other = steps[steps.size() / 2];
  const auto half = [&](double StepSeconds::*field) {
    return one.*field + 0.5 * (other.*field - one.*field);
  };
  return {.seconds = half(&StepSeconds::seconds),
          .compute = half(&StepSeconds::compute),
          .host = half(&StepSeconds::host),
          .waiting = half(&StepSeconds::waiting),
          .loading = half(&StepSeconds::loading),
          .exposed = half(&StepSeconds::exposed),
          .communication = half(&StepSeconds::communication)};
}

StepSeconds mean_step(const std::vector<StepSeconds>& steps) {
  const auto over_steps = [&](double StepSeconds::*field) { return mean(column(steps, field)); };
  return {.seconds = over_steps(&StepSeconds::seconds),
          .compute = over_steps(&StepSeconds::compute),
          .host = over_steps(&StepSeconds::host),
          .waiting = over_steps(&StepSeconds::waiting),
          .loading = over_steps(&StepSeconds::loading),
          .exposed = over_steps(&StepSeconds::exposed),
          .communication = over_steps(&StepSeconds::communication)};
}

/// The step time with these links failed [s].
double seconds_with(const Experiment& experiment, const FailedLinks& failed) {
  Platform platform = experiment.platform;
  platform.software = {};
  Simulation simulation = simulation_of(experiment);
  simulation.platform = &platform;
  // A factor of 1 on a dead link still tells the rules of fidelity that links differ.
  for (const int link : failed.ids) simulation.bandwidths.multiply(link, failed.share > 0 ? failed.share : 1);
  if (failed.share == 0) platform.dead_links = failed.ids;
  simulation.bandwidths.use_routes_of(platform);
  return median_step(simulate(simulation).steps).seconds;
}

/// Sets the `speed` of each of `faults.links` that cuts no node off: the step time without the failure over
/// that with it, each from a simulation of its own. Algorithms of collectives are chosen anew. Both
/// simulations simulate messages where a platform names NCCL, because the model of NCCL knows no single link.
void set_link_speeds(Faults& faults, const Experiment& experiment) {
  if (faults.links.empty()) return;
  const double usual = seconds_with(experiment, {.ids = {}, .share = 1});
  for (std::size_t i = 0; i < faults.links.size(); ++i) {
    LinkFault& fault = faults.links[i];
    if (fault.cut_off == 0)
      fault.speed = std::min(1.0, usual / seconds_with(experiment, experiment.faults->links[i]));
  }
}

/// Duration of a training of `steps` steps, or of the scenario's epochs if `steps` is 0 [s].
Seconds training_of(const Row& row, double steps) {
  return {steps > 0 ? steps * *row.number("step_seconds") : 3600 * *row.number("training_hours")};
}

void set_intervals(Row& row, const Faults& faults, int draws) {
  const bool fails = faults.node_mtbf.value > 0 && faults.checkpoints.write.value > 0;
  if (!fails || faults.response == FailureResponse::shrink) return;
  const CheckpointProblem problem = checkpoint_problem(faults);
  row.set("best_checkpoint_interval_seconds", best_interval(faults, draws).value);
  row.set("young_checkpoint_interval_seconds", young_interval(problem).value);
  row.set("daly_checkpoint_interval_seconds", daly_interval(problem).value);
}

void set_losses(Row& row, const TrainingTime& time) {
  row.set("lost_to_checkpoints_seconds", time.checkpoints.value);
  row.set("lost_to_rework_seconds", time.rework.value);
  row.set("lost_to_restart_seconds", time.restart.value);
  row.set("lost_to_missing_workers_seconds", time.missing.value);
  row.set("lost_to_slow_workers_seconds", time.slow.value);
}

/// Adds the columns of `faults:`.
/// @return the mean duration of a training with faults; nothing if the training never ends
std::optional<Seconds> set_faults(Row& row, const Experiment& experiment) {
  const FaultOptions& options = *experiment.faults;
  Faults faults = options.faults;
  faults.seed = experiment.seed;
  faults.training = training_of(row, options.steps);
  if (faults.exchange.value == 0 && faults.response == FailureResponse::shrink)
    faults.exchange = {row.number("block_seconds").value_or(*row.number("step_seconds"))};
  set_link_speeds(faults, experiment);
  set_intervals(row, faults, options.draws);
  if (options.best_interval) {
    const auto best = row.number("best_checkpoint_interval_seconds");
    faults.checkpoints.interval = best ? Seconds{*best} : faults.training;
  }
  std::vector<double> totals;
  const TrainingTime time = mean_training_time(faults, options.draws, &totals);
  row.set("training_finishes", time.finished);
  if (!time.finished) return std::nullopt;
  row.set("training_hours_with_faults", time.total.value / 3600);
  row.set("training_hours_with_faults_p10", quantile(totals, 0.1) / 3600);
  row.set("training_hours_with_faults_p90", quantile(totals, 0.9) / 3600);
  row.set("useful_share", faults.training / time.total);
  row.set("failures", time.failures);
  set_losses(row, time);
  if (!faults.links.empty()) {
    row.set("link_failures", time.link_failures);
    row.set("lost_to_links_seconds", time.links.value);
  }
  return time.total;
}

void set_campaign(Row& row, const Experiment& experiment, Seconds training) {
  Campaign campaign = experiment.campaign->campaign;
  campaign.seed = experiment.seed;
  campaign.training = training;
  const CampaignTimes times = mean_campaign_times(campaign, experiment.campaign->draws);
  set_campaign_columns(row, times, campaign.points);
}

}  // namespace

void set_campaign_columns(Row& row, const CampaignTimes& times, int points) {
  const double all = times.devices * times.makespan.value;
  row.set("campaign_devices", std::int64_t{times.devices});
  row.set("makespan_hours", times.makespan.value / 3600);
  row.set("points_per_hour", points / (times.makespan.value / 3600));
  row.set("device_utilization", times.busy / all);
  row.set("idle_optimizer_share", times.idle_optimizer / all);
  row.set("idle_fold_share", times.idle_fold / all);
  row.set("idle_generation_share", times.idle_generation / all);
  row.set("idle_tail_share", times.idle_tail / all);
  row.set("idle_driver_share", times.idle_driver / all);
  row.set("optimizer_utilization", times.optimizer_busy);
}

void set_training_columns(Row& row, const Experiment& experiment) {
  std::optional<Seconds> training;
  if (experiment.faults) training = set_faults(row, experiment);
  if (!experiment.campaign) return;
  if (!experiment.faults) training = training_of(row, experiment.campaign->steps);
  if (training) set_campaign(row, experiment, *training);
}

namespace {

/// Refuses steps that cannot be: one of no time, or all together shorter than the compute of a worker.
/// @throws std::logic_error
void check_steps(const Plan& plan, const std::vector<StepSeconds>& steps) {
  double seconds = 0, compute = 0;
  for (const StepSeconds& step : steps) {
    if (!std::isfinite(step.seconds) || step.seconds <= 0)
      throw std::logic_error(fmt::format("a simulated step takes {} s", step.seconds));
    seconds += step.seconds;
    compute += step.compute;
  }
  if (!plan.asynchronous && seconds < (1 - 1e-9) * compute) {
    throw std::logic_error(
        fmt::format("the simulated steps take {} s, in which workers compute {} s", seconds, compute));
  }
}

void set_times(Row& row, const std::vector<StepSeconds>& steps, StepStatistic statistic) {
  const auto seconds = column(steps, &StepSeconds::seconds);
  const StepSeconds step = statistic == StepStatistic::mean ? mean_step(steps) : median_step(steps);
  row.set("step_seconds", step.seconds);
  row.set("step_seconds_mean", mean(seconds));
  row.set("step_seconds_p10", quantile(seconds, 0.1));
  row.set("step_seconds_p90", quantile(seconds, 0.9));
  row.set("compute_seconds", step.compute);
  row.set("host_seconds", step.host);
  // The slowest worker's compute minus the mean: for equal workers it is a rounding error of either sign.
  const bool rounding = std::abs(step.waiting) < 1e-12 * step.compute;
  row.set("waiting_seconds", rounding ? 0 : step.waiting);
  row.set("data_loading_seconds", step.loading);
  row.set("exposed_communication_seconds", step.exposed);
  row.set("communication_seconds", step.communication);
  remove_rounding_of_compute(row);
}

std::string joined(const IneffectiveKeys& found) {
  std::string all;
  for (const IneffectiveKey& one : found) all += (all.empty() ? "" : "; ") + to_string(one);
  return all;
}

}  // namespace

void remove_rounding_of_compute(Row& row) {
  const auto step = row.number("step_seconds"), compute = row.number("compute_seconds");
  if (step && compute && *compute > *step && *compute < *step * (1 + 1e-12))
    row.set("compute_seconds", *step);
}

Simulation simulation_of(const Experiment& experiment) {
  Simulation simulation;
  simulation.platform = &experiment.platform;
  simulation.bandwidths = experiment.bandwidths;
  simulation.plan = &experiment.plan;
  simulation.noise = experiment.noise;
  simulation.seed = experiment.seed;
  simulation.fidelity = experiment.fidelity;
  simulation.link_sharing = experiment.link_sharing;
  simulation.fold = experiment.fold;
  simulation.compute_factor = slowest_device_factor(experiment.plan, experiment.noise);
  return simulation;
}

Row simulate_point(const Experiment& experiment, AllReduceChoices* automatic, StepStatistic statistic) {
  const Plan& plan = experiment.plan;
  const Simulation simulation = simulation_of(experiment);
  SimulationResult result = simulate(simulation);
  check_steps(plan, result.steps);
  attribute_to_slowest(simulation.compute_factor, result.steps);
  if (automatic != nullptr) *automatic = result.automatic;

  Row row;
  row.set("strategy", experiment.strategy);
  row.set("workers", std::int64_t{plan.workers});
  row.set("devices", std::int64_t{plan.devices});
  row.set("batch_per_worker", plan.batch_per_worker);
  row.set("global_batch", static_cast<std::int64_t>(plan.samples_a_step));
  set_times(row, result.steps, statistic);
  set_totals(row, experiment);
  if (plan.figures) {
    Records records = std::move(result.records);
    if (plan.asynchronous) records = first_records(std::move(records), result.steady_counts);
    for (const auto& [column, value] : plan.figures(records, *row.number("step_seconds")))
      row.set(column, value);
  }
  set_training_columns(row, experiment);
  row.set("fidelity", to_text(result.fidelity));
  row.set("folding", to_text(result.folding));
  if (!result.link_sharing.empty()) row.set("link_sharing", result.link_sharing);
  row.set("all_reduce", result.algorithms);
  row.set("trace_kind", plan.trace_kind);
  if (!plan.flags.empty()) row.set("trace_flags", fmt::format("{}", fmt::join(plan.flags, "; ")));
  if (!plan.ineffective_keys.empty()) row.set("without_effect", joined(plan.ineffective_keys));
  return row;
}

namespace {

/// Training time without the time lost to faults [s]; 0 if the scenario has no faults.
double training_seconds(const Row& row) {
  return 3600 * row.number("training_hours_with_faults").value_or(0) * row.number("useful_share").value_or(0);
}

}  // namespace

bool may_change(const Scenario& scenario, Without what) {
  if (what == Without::nothing) return false;
  const std::string key = what == Without::jitter ? "jitter" : "straggler";  // straggler_share, stragglers
  const auto gives = [&](const std::string& path) {
    return path == "noise" || path.starts_with("noise." + key);
  };
  const YamlNode* noise = scenario.document.find("noise");
  const auto has_key = [&](const auto& entry) { return entry.first.text.starts_with(key); };
  return (noise != nullptr && std::ranges::any_of(noise->entries, has_key)) ||
         std::ranges::any_of(scenario.settings, gives, &Assignment::path) ||
         std::ranges::any_of(scenario.assumptions, gives, &Assumption::key) ||
         std::ranges::any_of(scenario.sweep_keys, gives);
}

bool leave_out(Without what, Noise& noise) {
  if (what == Without::nothing) return false;
  const bool jitter = noise.jitter != Noise::Jitter::none, slow = noise.has_stragglers();
  noise.jitter = Noise::Jitter::none;
  if (what == Without::jitter) return jitter;
  noise.straggler_share = 0;
  noise.stragglers.clear();
  return slow;
}

void add_noise_losses(Row& row, const Row& with, const std::map<Without, Row>& without) {
  const double step = *with.number("step_seconds"), training = training_seconds(row);
  double before = step;
  const auto add = [&](Without what, const std::string& column, const std::string& of_training) {
    const auto found = without.find(what);
    if (found == without.end()) return;
    const double after = *found->second.number("step_seconds");
    row.set(column, before - after);
    if (training > 0) row.set(of_training, training * (before - after) / step);
    before = after;
  };
  add(Without::jitter, "jitter_seconds", "lost_to_jitter_seconds");
  add(Without::noise, "straggler_seconds", "lost_to_stragglers_seconds");
}

}  // namespace stepcast
