#include "runtime/runs/point_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/os/files.hpp"
#include "kernels/timing/host_info.hpp"
#include "report/results/results.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"
#include "runtime/scenario_points/step_times.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

std::vector<std::size_t> unfinished_points(const std::vector<RunQuality>& runs, std::size_t points,
                                           const RetryBudget& budget) {
  std::vector<int> good(points, 0), undisturbed(points, 0), all(points, 0);
  for (const RunQuality& run : runs) {
    ++all[run.point];
    undisturbed[run.point] += run.disturbed ? 0 : 1;
    good[run.point] += !run.disturbed && run.speed_deviation <= kMaxSpeedDeviation ? 1 : 0;
  }
  std::vector<std::size_t> unfinished;
  for (std::size_t i = 0; i < points; ++i) {
    if (good[i] < budget.wanted && undisturbed[i] < budget.most_undisturbed && all[i] < budget.most)
      unfinished.push_back(i);
  }
  return unfinished;
}

std::vector<bool> select_runs(const std::vector<RunQuality>& runs, int wanted) {
  std::map<std::size_t, std::vector<std::size_t>> of_point;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].disturbed) of_point[runs[i].point].push_back(i);
  }
  std::vector<bool> kept(runs.size(), false);
  for (auto& [point, own] : of_point) {
    std::ranges::stable_sort(own, {}, [&](std::size_t i) { return runs[i].speed_deviation; });
    for (std::size_t k = 0; k < own.size(); ++k)
      kept[own[k]] =
          k < static_cast<std::size_t>(wanted) || runs[own[k]].speed_deviation <= kMaxSpeedDeviation;
  }
  return kept;
}

namespace {

constexpr int kMaxUndisturbed = 2;  // limit of undisturbed runs, as a multiple of those wanted

}  // namespace

PointRuns::PointRuns(const RankContext& run, const Validation& validation, const ValidationOptions& options,
                     Library& library, RunResources resources)
    : run_(run),
      validation_(validation),
      options_(options),
      library_(library),
      resources_(std::move(resources)),
      completions_(&run.polling,
                   [&run] {
                     (run.polling.pending_collectives.load() > 0 ? run.transport : *run.message_transport)
                         .wake_to_poll();
                   }),
      collective_thread_(&run.state.collectives_heartbeat, &run.polling),
      messages_(*run.message_transport, &run.state.messages_heartbeat) {
  if (resources_.device_payloads != nullptr)
    messages_.on_payload_announced([device_payloads = resources_.device_payloads](const Message& one) {
      device_payloads->post_receive(one.payload);
    });
  if (const auto file = run.folder / "samples.jsonl";
      run.transport.is_rank_0() && std::filesystem::exists(file))
    earlier_ = read_file(file);
  networks_ = std::move(resources_.networks);
  for (std::size_t i = 0; i < validation.points.size(); ++i) add(i);
  open_input();
}

PointRuns::~PointRuns() {
  if (resources_.device_payloads != nullptr) resources_.device_payloads->end_runs();
}

/// Makes the file that this rank reads its input from, for the largest mini-batch of all points.
void PointRuns::open_input() {
  double largest = 0;
  for (const auto& point : points_) {
    if (!point->experiment.plan.load_data) continue;
    for (const Workload& one : point->experiment.plan.workloads) largest = std::max(largest, one.input.value);
  }
  if (largest > 0)
    input_ = std::make_unique<InputLoader>(run_.folder, static_cast<std::int64_t>(largest), &run_.polling,
                                           &run_.state.input_heartbeat);
}

void PointRuns::run_all(int forecast) {
  if (forecast > 1) {
    for (std::size_t i = 0; i < points_.size(); ++i)
      points_[i]->collectives = collectives_of(i, points_[i]->experiment.plan);
    runs_.clear();
    samples_.clear();
    if (run_.transport.is_rank_0()) earlier_ = read_file(run_.folder / "samples.jsonl");
  }
  forecast_ = forecast;
  const RetryBudget budget{options_.repeats, kMaxUndisturbed * options_.repeats,
                           kMaxAttempts * options_.repeats};
  int number = 0;
  for (auto points = unfinished_points(runs_, points_.size(), budget); !points.empty();
       points = unfinished_points(runs_, points_.size(), budget))
    run_round(points, ++number);
  write(true);
}

void PointRuns::run_round(const std::vector<std::size_t>& points, int number) {
  const std::size_t first = runs_.size();
  CoreSpeedProbe* const speed = resources_.speed;
  CoreToCoreLatency* const latency = run_.transport.core_latency();
  std::vector<double> probes;
  for (const std::size_t point : points) {
    if (latency != nullptr) latency->wait();
    if (speed != nullptr) probes.push_back(speed->probe() / speed->reference_seconds());
    const Measured measured = run_once(point, number);
    const RunSample sample = gather(point, number, measured);
    if (run_.transport.is_rank_0()) samples_.push_back(sample);
    runs_.push_back({point, is_disturbed(sample, measured), 0});
    write(false);
    if (speed != nullptr && run_.transport.is_rank_0()) samples_.back().probe_slowness = probes.back();
    if (number == 1 && resources_.between_runs) resources_.between_runs(1.0 * runs_.size() / points.size());
  }
  if (probes.empty()) return;
  const double slowness = mean_of_probes(probes, 1);
  for (std::size_t i = first; i < runs_.size(); ++i) {
    if (!options_.accept_disturbed && options_.forecasts == 1)
      runs_[i].speed_deviation = std::abs(slowness - 1);
    if (run_.transport.is_rank_0()) samples_[i].round_slowness = slowness;
  }
}

void PointRuns::add(std::size_t index) {
  auto point = std::make_unique<PreparedPoint>();
  point->experiment = measured_experiment(validation_, index, run_.folder, {}, library_);
  const Experiment& experiment = point->experiment;
  point->collectives = collectives_of(index, experiment.plan);
  if (resources_.device) point->device = resources_.device(index, experiment);
  if (!point->device) point->device = device_of(index, *point);
  if (resources_.make_collective_backend)
    point->collective_backend = resources_.make_collective_backend(experiment.plan);
  if (resources_.device_payloads != nullptr)
    resources_.device_payloads->open_channels(message_pairs(experiment.plan));
  points_.push_back(std::move(point));
}

std::unique_ptr<RankCollectives> PointRuns::collectives_of(std::size_t index, const Plan& plan) const {
  return std::make_unique<RankCollectives>(
      plan, read_all_reduces(all_reduce_file(run_.folder), validation_.point(index).name, plan),
      run_.transport.rank());
}

/// The device of a pipeline stage or of a whole replica; RunResources::device makes the others.
std::unique_ptr<RankDevice> PointRuns::device_of(std::size_t index, PreparedPoint& point) {
  const NetworkVariant& variant = validation_.variants[index];
  const Experiment& experiment = point.experiment;
  const ModelPartition& partition = experiment.plan.partition;
  const RankId rank = run_.transport.rank();
  NetworkOptions options{.batch = variant.batch, .data_seed = 1 + rank.index()};
  options.optimizer = {.learning_rate = 1e-3 / experiment.plan.workers};
  const RoleId role = role_of(experiment.plan, rank);
  if (partition.form == ModelPartition::Form::stages && role.exists()) {
    const int stages = experiment.plan.roles.size();
    point.stage =
        pipeline_stage_networks(resources_.backend, experiment.model, partition,
                                {role.value, stages, place_in_stage(partition, rank.value)}, options);
    return pipeline_stage_device(point.stage, partition, role.value,
                                 owned_slices(experiment.plan, rank, point.stage, role.value));
  }
  Network& network = network_of(variant, experiment);
  DeviceLearning learning;
  learning.summed = experiment.plan.summed_gradients;
  learning.place = rank.value;
  learning.compresses = validation_.plan(index).compresses;
  learning.owned = reduce_scattered_slices(experiment.plan, rank, ParameterLayout(network));
  return replica_device(network, std::move(learning));
}

/// The network of a variant, which all points that train this variant use.
Network& PointRuns::network_of(const NetworkVariant& variant, const Experiment& experiment) {
  auto& network = networks_[variant];
  if (network == nullptr) {
    network = std::make_shared<Network>(
        resources_.backend, experiment.model,
        NetworkOptions{.batch = variant.batch, .data_seed = 1 + run_.transport.rank().index()});
  }
  return *network;
}

PointRuns::Measured PointRuns::run_once(std::size_t index, int repeat) {
  PreparedPoint& point = *points_[index];
  const Plan& plan = point.experiment.plan;
  const std::string& name = validation_.point(index).name;
  set_status(run_.state, fmt::format("{} (repeat {})", name, repeat).c_str());
  RealWorld world{.plan = plan,
                  .transport = run_.transport,
                  .collective_thread = collective_thread_,
                  .messages = messages_,
                  .device = *point.device,
                  .collectives = *point.collectives,
                  .completions = completions_,
                  .state = run_.state,
                  .polling = &run_.polling,
                  .input = plan.load_data ? input_.get() : nullptr,
                  .delay = start_seconds(plan, point.experiment.noise, run_.transport.rank()),
                  .library = run_.library,
                  .collective_backend = point.collective_backend,
                  .device_payloads = resources_.device_payloads,
                  .on_failure = resources_.on_failure};
  Measured measured;
  const StolenShare stolen;
  measured.run = run_program(world, ++last_run_);
  if (run_.cluster.kind == Cluster::Kind::hosts) {
    const double ahead = clock_offset_to_rank_0(run_.transport);
    for (double& end : measured.run.step_ends) end -= ahead;
  }
  measured.stolen_share = stolen.until_now(resources_.loads.stolen * measured.run.loaded_bytes);
  CoreToCoreLatency* const latency = run_.transport.core_latency();
  if (latency != nullptr) measured.round_trip = latency->round_trip();
  return measured;
}

/// The line of samples.jsonl, on rank 0; empty on the other ranks.
RunSample PointRuns::gather(std::size_t index, int repeat, const Measured& measured) const {
  const Plan& plan = points_[index]->experiment.plan;
  const RealRun& run = measured.run;
  const double used = run.work_time.cpu + resources_.loads.off_core * run.loaded_bytes;
  const double waited = run.work_time.wall > 0 ? std::max(0.0, 1 - used / run.work_time.wall) : 0;
  const auto ends = gather_on_rank_0(run_.transport, run.step_ends);
  const auto quality = gather_on_rank_0(run_.transport, {waited, measured.stolen_share});
  const auto compute = gather_on_rank_0(run_.transport, run.compute_seconds);
  RunSample sample;
  if (!run_.transport.is_rank_0()) return sample;
  if (options_.forecasts > 1) sample.forecast = forecast_;
  sample.point = validation_.point(index).name;
  sample.repeat = repeat;
  sample.step_seconds = plan.asynchronous ? independent_step_seconds(plan, ends)
                                          : synchronous_step_seconds(ends, step_statistic(options_));
  for (const std::vector<double>& rank : quality) {
    sample.disturbance = std::max(sample.disturbance, rank[0]);
    sample.stolen = std::max(sample.stolen, rank[1]);
  }
  sample.compute_seconds = mean_compute_seconds(compute, plan.workers);
  sample.waiting_seconds = waiting_seconds(compute, plan.workers);
  if (run_.transport.core_latency() != nullptr) sample.round_trip_seconds = measured.round_trip;
  return sample;
}

/// True if any rank was disturbed, or if the host moved the latency; the same on all ranks.
bool PointRuns::is_disturbed(const RunSample& sample, const Measured& measured) const {
  bool disturbed = false;
  if (run_.transport.is_rank_0() && !options_.accept_disturbed)
    disturbed = sample.disturbance > kMaxDisturbance || sample.stolen > kMaxStolenShare;
  const CoreToCoreLatency* const latency = run_.transport.core_latency();
  const bool moved =
      latency != nullptr && !latency->is_at_baseline(measured.round_trip) && !options_.accept_disturbed;
  return broadcast_from_rank_0(run_.transport, disturbed ? 1 : 0) > 0 || moved;
}

/// Adds the last run to the file, marked as kept if it was not disturbed. At the end, writes all runs again,
/// with those marked that select_runs chooses.
void PointRuns::write(bool at_the_end) const {
  if (!run_.transport.is_rank_0() || samples_.empty()) return;
  const auto file = run_.folder / "samples.jsonl";
  const auto line = [&](RunSample sample, bool kept) {
    sample.kept = kept;
    return to_json_line({validation_.scenario.name, {}}, to_row(sample));
  };
  if (!at_the_end) return append_line(file, line(samples_.back(), !runs_.back().disturbed));
  const std::vector<bool> kept = select_runs(runs_, options_.repeats);
  std::string text = earlier_;
  for (std::size_t i = 0; i < samples_.size(); ++i) text += line(samples_[i], kept[i]) + "\n";
  write_atomically(file, text);
}

}  // namespace stepcast
