#include "validate/real_runs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/atomic_file.hpp"
#include "report/csv.hpp"
#include "report/json_lines.hpp"
#include "validate/gather.hpp"
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

/// What the forecast says of each point's step; empty where there is none: stepcast-gpu run makes none.
std::vector<double> predicted_seconds(const std::filesystem::path& folder) {
  const auto file = folder / "predicted.csv";
  std::vector<double> seconds;
  if (!std::filesystem::exists(file)) return seconds;
  for (const Row& row : read_csv(read_file(file), file.string()).rows)
    seconds.push_back(row.number("step_seconds").value_or(0));
  return seconds;
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
  const std::vector<double> predicted = predicted_seconds(run.folder);
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    add(i);
    if (!predicted.empty()) points_.back()->delay = delay_of(i, predicted.at(i));
  }
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
  points_.push_back(std::move(point));
}

/// Workers without a common pace that start together go on in step for long, as links are fair; theirs is
/// spread over the time from one exchange of a worker to its next, as they are found later on.
double RealRuns::delay_of(std::size_t index, double step_seconds) const {
  const Plan& plan = points_[index]->experiment.plan;
  const int worker = run_.transport.rank(), workers = training_ranks(plan);
  if (!plan.asynchronous || worker >= workers) return 0;
  return static_cast<double>(validation_.periods[index]) * step_seconds * worker / workers;
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
    return stage_device(point.stage, sharing, role,
                        scattered_parts(experiment.plan, rank, ArrayMap(point.stage.chunks.front().first())));
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
  RealWorld world{point.experiment.plan, run_.transport, thread_,    mail_,       *point.device,
                  *point.collectives,    completions_,   run_.state, point.delay, run_.library_all_reduce};
  world.carry = point.carry;
  const RealRun result = run_program(world, ++runs_);
  const double disturbance =
      result.worked.wall > 0 ? std::max(0.0, 1 - result.worked.cpu / result.worked.wall) : 0;
  std::vector<double> mine = result.step_ends;
  const auto ends = gathered(run_.transport, mine);
  const auto others = gathered(run_.transport, {disturbance, mean_of(result.compute_seconds)});
  double worst = 0;
  if (run_.transport.rank() == 0) worst = write(point, name, repeat, ends, others);
  worst = shared_value(run_.transport, worst);
  return options_.accept_disturbed || worst <= kDisturbance;
}

/// @return the disturbance of the rank that suffered most
double RealRuns::write(const RealPoint& point, const std::string& name, int repeat,
                       const std::vector<std::vector<double>>& ends,
                       const std::vector<std::vector<double>>& others) {
  const Plan& plan = point.experiment.plan;
  double worst = 0, compute = 0;
  for (const std::vector<double>& rank : others) {
    worst = std::max(worst, rank[0]);
    compute += rank[1] / plan.workers;
  }
  Row row;
  row.set("point", name);
  row.set("repeat", std::int64_t{repeat + 1});
  row.set("step_seconds",
          plan.asynchronous ? asynchronous_step_seconds(ends) : synchronous_step_seconds(ends));
  row.set("compute_seconds", compute);
  row.set("disturbance", worst);
  row.set("kept", options_.accept_disturbed || worst <= kDisturbance);
  append_line(run_.folder / "samples.jsonl", to_json_line({validation_.scenario.name, {}}, row));
  return worst;
}

}  // namespace stepcast
