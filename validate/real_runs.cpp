#include "validate/real_runs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/stolen_time.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "strategies/own_pace.hpp"
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

}  // namespace

RealRuns::RealRuns(const RankRun& run, const Validation& validation, const ValidationOptions& options,
                   Library& library, RealPlace place)
    : run_(run),
      validation_(validation),
      options_(options),
      library_(library),
      place_(std::move(place)),
      thread_(&run.state.collectives_beat),
      mail_(*run.mail, &run.state.messages_beat) {
  if (place_.parcels != nullptr)
    mail_.tell_parcels([parcels = place_.parcels](const Message& one) { parcels->expect(one.parcel); });
  for (std::size_t i = 0; i < validation.points.size(); ++i) add(i);
}

void RealRuns::all() {
  std::vector<int> kept(points_.size(), 0), made(points_.size(), 0);
  bool more = true;
  while (more) {
    more = false;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (kept[i] >= options_.repeats || made[i] >= kAttempts * options_.repeats) continue;
      kept[i] += once(i, made[i]) ? 1 : 0;
      ++made[i];
      more = true;
    }
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
    point.stage = stage_networks(place_.backend, experiment.model, sharing, role, stages, options);
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

/// @return whether the run was undisturbed, the same on all ranks
bool RealRuns::once(std::size_t index, int repeat) {
  RealPoint& point = *points_[index];
  const std::string& name = validation_.scenario.points[validation_.points[index]].name;
  say(run_.state, fmt::format("{} (repeat {})", name, repeat + 1).c_str());
  RealWorld world{point.experiment.plan,
                  run_.transport,
                  thread_,
                  mail_,
                  *point.device,
                  *point.collectives,
                  completions_,
                  run_.state,
                  start_seconds(point.experiment.plan, point.experiment.noise, run_.transport.rank()),
                  run_.library_all_reduce};
  world.carry = point.carry;
  world.parcels = place_.parcels;
  const StolenShare stolen;
  const RealRun result = run_program(world, ++runs_);
  const double stolen_share = stolen.until_now();
  const double disturbance =
      result.worked.wall > 0 ? std::max(0.0, 1 - result.worked.cpu / result.worked.wall) : 0;
  std::vector<double> mine = result.step_ends;
  const auto ends = gathered(run_.transport, mine);
  const auto others = gathered(run_.transport, {disturbance, mean_of(result.compute_seconds), stolen_share});
  const bool kept = run_.transport.rank() == 0 && write(point, name, repeat, ends, others);
  return shared_value(run_.transport, kept ? 1 : 0) > 0;
}

/// @return whether no rank was disturbed
bool RealRuns::write(const RealPoint& point, const std::string& name, int repeat,
                     const std::vector<std::vector<double>>& ends,
                     const std::vector<std::vector<double>>& others) {
  const Plan& plan = point.experiment.plan;
  double waited = 0, compute = 0, stolen = 0;
  for (const std::vector<double>& rank : others) {
    waited = std::max(waited, rank[0]);
    compute += rank[1] / plan.workers;
    stolen = std::max(stolen, rank[2]);
  }
  Row row;
  row.set("point", name);
  row.set("repeat", std::int64_t{repeat + 1});
  row.set("step_seconds",
          plan.asynchronous ? asynchronous_step_seconds(ends) : synchronous_step_seconds(ends));
  row.set("compute_seconds", compute);
  row.set("disturbance", waited);
  row.set("stolen", stolen);
  const bool kept = options_.accept_disturbed || (waited <= kDisturbance && stolen <= kMostStolen);
  row.set("kept", kept);
  append_line(run_.folder / "samples.jsonl", to_json_line({validation_.scenario.name, {}}, row));
  return kept;
}

}  // namespace stepcast
