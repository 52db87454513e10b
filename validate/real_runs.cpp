#include "validate/real_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/stolen_time.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "strategies/own_pace.hpp"
#include "validate/core_distance.hpp"
#include "validate/gather.hpp"
#include "validate/message_pairs.hpp"
#include "validate/repeats.hpp"
#include "validate/roles.hpp"
#include "validate/step_seconds.hpp"

namespace stepcast {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

constexpr int kRounds = 2;  // undisturbed runs at most, as a multiple of those wanted

}  // namespace

RealRuns::RealRuns(const RankRun& run, const Validation& validation, const ValidationOptions& options,
                   Library& library, RealPlace place)
    : run_(run),
      validation_(validation),
      options_(options),
      library_(library),
      place_(std::move(place)),
      thread_(&run.state.collectives_beat, &run.leisure),
      mail_(*run.mail, &run.state.messages_beat),
      completions_(&run.leisure,
                   [&run] { (run.leisure.collectives.load() > 0 ? run.transport : *run.mail).hurry(); }) {
  if (place_.parcels != nullptr)
    mail_.tell_parcels([parcels = place_.parcels](const Message& one) { parcels->expect(one.parcel); });
  networks_ = std::move(place_.networks);
  for (std::size_t i = 0; i < validation.points.size(); ++i) add(i);
}

void RealRuns::all() {
  const Chances chances{options_.repeats, kRounds * options_.repeats, kAttempts * options_.repeats};
  int number = 0;
  for (auto points = unfinished_points(made_, points_.size(), chances); !points.empty();
       points = unfinished_points(made_, points_.size(), chances))
    round(points, ++number);
  write(true);
}

void RealRuns::round(const std::vector<std::size_t>& points, int number) {
  const std::size_t first = made_.size();
  MachineSpeed* const speed = place_.speed;
  CoreDistance* const cores = run_.transport.cores();
  std::vector<double> probes;
  for (const std::size_t point : points) {
    if (cores != nullptr) cores->wait();
    if (speed != nullptr) probes.push_back(speed->probe() / speed->pace());
    once(point, number);
    if (speed != nullptr && run_.transport.rank() == 0) rows_.back().set("probe_slowness", probes.back());
  }
  if (probes.empty()) return;
  const double slowness = mean_of_probes(probes, 1);
  for (std::size_t i = first; i < made_.size(); ++i) {
    if (!options_.accept_disturbed) made_[i].off_pace = std::abs(slowness - 1);
    if (run_.transport.rank() == 0) rows_[i].set("round_slowness", slowness);
  }
}

void RealRuns::add(std::size_t index) {
  auto point = std::make_unique<RealPoint>();
  point->experiment = measured_experiment(validation_, index, run_.folder, {}, library_);
  const Experiment& experiment = point->experiment;
  point->collectives = std::make_unique<RealCollectives>(
      experiment.plan, link_table_of(experiment.platform, experiment.plan.endpoints), run_.transport.rank());
  if (place_.device) point->device = place_.device(index, experiment);
  if (!point->device) point->device = device_of(index, *point);
  if (place_.carry) point->carry = place_.carry(experiment.plan);
  if (place_.parcels != nullptr) place_.parcels->open(message_pairs(experiment.plan));
  points_.push_back(std::move(point));
}

/// Of this rank's part of the network, where the plan cuts it.
std::unique_ptr<RankDevice> RealRuns::device_of(std::size_t index, RealPoint& point) {
  const Need& need = validation_.needs[index];
  const Experiment& experiment = point.experiment;
  const NetworkSharing& sharing = experiment.plan.sharing;
  const int rank = run_.transport.rank();
  NetworkOptions options{.batch = need.batch, .data_seed = static_cast<std::uint64_t>(1 + rank)};
  options.optimizer = {.learning_rate = 1e-3 / experiment.plan.workers};
  const int role = role_of(experiment.plan, rank);
  if (sharing.form == NetworkSharing::Form::stages && role >= 0) {
    const int stages = static_cast<int>(experiment.plan.roles.size());
    point.stage = stage_networks(place_.backend, experiment.model, sharing,
                                 {role, stages, rank % sharing.ways}, options);
    return stage_device(point.stage, sharing, role, owned_parts(experiment.plan, rank, point.stage, role));
  }
  Network& network = network_of(need, experiment);
  DeviceLearning learning;
  learning.summed = experiment.plan.summed_gradients;
  learning.place = rank;
  learning.compresses = validation_.compresses[index];
  learning.owned = scattered_parts(experiment.plan, rank, ArrayMap(network));
  return kernel_device(network, std::move(learning));
}

/// One network for all points that train it.
Network& RealRuns::network_of(const Need& need, const Experiment& experiment) {
  auto& network = networks_[need];
  if (network == nullptr) {
    network = std::make_unique<Network>(
        place_.backend, experiment.model,
        NetworkOptions{.batch = need.batch,
                       .data_seed = static_cast<std::uint64_t>(1 + run_.transport.rank())});
  }
  return *network;
}

void RealRuns::once(std::size_t index, int repeat) {
  RealPoint& point = *points_[index];
  const std::string& name = validation_.scenario.points[validation_.points[index]].name;
  say(run_.state, fmt::format("{} (repeat {})", name, repeat).c_str());
  RealWorld world{point.experiment.plan,
                  run_.transport,
                  thread_,
                  mail_,
                  *point.device,
                  *point.collectives,
                  completions_,
                  run_.state,
                  &run_.leisure,
                  start_seconds(point.experiment.plan, point.experiment.noise, run_.transport.rank()),
                  run_.library_all_reduce};
  world.carry = point.carry;
  world.parcels = place_.parcels;
  const StolenShare stolen;
  const RealRun result = run_program(world, ++runs_);
  const double stolen_share = stolen.until_now();
  CoreDistance* const cores = run_.transport.cores();
  const double distance = cores == nullptr ? 0 : cores->round_trip();
  const double waited =
      result.worked.wall > 0 ? std::max(0.0, 1 - result.worked.cpu / result.worked.wall) : 0;
  const Plan& plan = point.experiment.plan;
  const auto ends = gathered(run_.transport, result.step_ends);
  const double own = mean_of(result.compute_seconds) / plan.workers;
  const auto others = gathered(run_.transport, {waited, own, stolen_share});
  const auto compute = gathered(run_.transport, result.compute_seconds);
  Row row;
  bool disturbed = false;
  if (run_.transport.rank() == 0) {
    row.set("point", name);
    row.set("repeat", std::int64_t{repeat});
    row.set("step_seconds", plan.asynchronous ? asynchronous_step_seconds(ends)
                                              : synchronous_step_seconds(ends, step_statistic(options_)));
    disturbed = is_disturbed(others, row);
    row.set("waiting_seconds", waiting_seconds(compute, plan.workers));
    if (cores != nullptr) row.set("round_trip_seconds", distance);
    rows_.push_back(row);
  }
  const bool moved = cores != nullptr && !cores->is_settled(distance) && !options_.accept_disturbed;
  made_.push_back({index, shared_value(run_.transport, disturbed ? 1 : 0) > 0 || moved, 0});
  write(false);
}

/// Whether any rank was; the row says how much.
bool RealRuns::is_disturbed(const std::vector<std::vector<double>>& others, Row& row) const {
  double waited = 0, compute = 0, stolen = 0;
  for (const std::vector<double>& rank : others) {
    waited = std::max(waited, rank[0]);
    compute += rank[1];
    stolen = std::max(stolen, rank[2]);
  }
  row.set("compute_seconds", compute);
  row.set("disturbance", waited);
  row.set("stolen", stolen);
  return !options_.accept_disturbed && (waited > kDisturbance || stolen > kMostStolen);
}

/// The last run is added to what the file has, and counts if it was not disturbed; at the end all of them are
/// written anew.
void RealRuns::write(bool at_the_end) const {
  if (run_.transport.rank() != 0 || rows_.empty()) return;
  const auto file = run_.folder / "samples.jsonl";
  const auto line = [&](Row row, bool kept) {
    row.set("kept", kept);
    return to_json_line({validation_.scenario.name, {}}, row);
  };
  if (!at_the_end) return append_line(file, line(rows_.back(), !made_.back().disturbed));
  const std::vector<bool> kept = kept_runs(made_, options_.repeats);
  std::string text;
  for (std::size_t i = 0; i < rows_.size(); ++i) text += line(rows_[i], kept[i]) + "\n";
  write_atomically(file, text);
}

}  // namespace stepcast
