#include "runtime/learning/learning_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "kernels/network/layer_table.hpp"
#include "report/results/results.hpp"
#include "runtime/learning/joint_shards.hpp"
#include "runtime/memory/parameters.hpp"
#include "runtime/runs/real_worker.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"

namespace stepcast {

std::int64_t mini_batches_a_step(const Plan& plan) {
  const double all = 1.0 * plan.batch_per_worker * plan.workers;
  return std::max<std::int64_t>(1, std::llround(plan.samples_a_step / all));
}

std::int64_t learning_steps(const Experiment& experiment) {
  const std::int64_t each = mini_batches_a_step(experiment.plan);
  return (experiment.learning->mini_batches + each - 1) / each;
}

namespace {

LearningTask task_of(const Experiment& experiment) {
  return learning_task(experiment.model, experiment.learning->discriminator);
}

}  // namespace

std::shared_ptr<const TrainAndTest> learning_data(const Experiment& experiment) {
  return std::make_shared<const TrainAndTest>(make_data(experiment.learning->data, task_of(experiment).form));
}

Learner::Learner(const Experiment& experiment, Backend& backend, Options options)
    : experiment_(experiment),
      options_(std::move(options)),
      task_(task_of(experiment)),
      backend_(backend),
      shard_(
          rank_learning_shard({backend_, experiment, task_, options_.rank, options_.batch, options_.joint})),
      batches_(*options_.data->train, task_.form, shard_->split()) {
  if (experiment.learning->start) initial_ = load_checkpoint(*experiment.learning->start, experiment.model);
  const bool in_order = !experiment.plan.chooses_mini_batches;
  if (in_order && trains(experiment.plan, options_.rank) && shard_->reads_data())
    batches_.prepare(experiment.learning->mini_batches * experiment.plan.batch_per_worker / options_.batch,
                     options_.on_progress);
}

std::unique_ptr<RankDevice> Learner::device() {
  return shard_->device(learning(), batches_);
}

DeviceLearning Learner::learning() {
  DeviceLearning learning;
  learning.compresses = options_.compresses;
  learning.place = options_.rank.value;
  learning.rate = experiment_.learning->rate;
  learning.summed = experiment_.plan.summed_gradients;
  learning.start = [this](Network&) {
    if (!initial_.empty()) shard_->load_parameters(initial_);
    take_snapshot(0);
  };
  return learning;
}

void Learner::take_snapshot(double seconds) {
  Snapshot& now = snapshots_.emplace_back(Snapshot{mini_batches_done_, seconds, {}});
  for (const Network* network : shard_->networks()) {
    const std::vector<float> own = stored_parameters(*network);
    now.values.insert(now.values.end(), own.begin(), own.end());
  }
}

void Learner::step_ended(double seconds) {
  const std::int64_t before = mini_batches_done_;
  mini_batches_done_ += mini_batches_a_step(experiment_.plan);
  const int every = experiment_.learning->evaluate_every;
  const bool last = mini_batches_done_ >= experiment_.learning->mini_batches;
  if (holds_evaluated_parameters() && (last || mini_batches_done_ / every > before / every))
    take_snapshot(seconds);
}

bool Learner::holds_evaluated_parameters() const {
  return shard_->holds_evaluated_parameters();
}

std::vector<EvaluatedLoss> Learner::evaluate() {
  const Dataset& test = *options_.data->test;
  std::unique_ptr<Evaluator> evaluator;
  if (options_.rank == RankId(0))
    evaluator =
        std::make_unique<Evaluator>(backend_, experiment_.model, task_, test,
                                    std::min(experiment_.learning->data.test_samples, test.samples()));
  std::vector<EvaluatedLoss> all;
  for (const Snapshot& snapshot : snapshots_) {
    const float* from = snapshot.values.data();
    for (Network* network : shard_->networks()) {
      store_parameters(from, *network);
      from += network->all_parameters().elements;
    }
    final_ = shard_->gather_parameters(options_.transport);
    if (evaluator) all.push_back(evaluation_of(snapshot, evaluator->score(final_, options_.on_progress)));
  }
  return all;
}

EvaluatedLoss Learner::evaluation_of(const Snapshot& snapshot, const Score& score) const {
  const Plan& plan = experiment_.plan;
  EvaluatedLoss one;
  one.strategy = experiment_.strategy;
  one.ranks = plan.endpoints.size();
  one.step = snapshot.mini_batches;
  one.mini_batches_a_step = mini_batches_a_step(plan);
  one.samples = snapshot.mini_batches * plan.samples_a_step / one.mini_batches_a_step;
  one.seconds = snapshot.seconds;
  one.loss = score.loss;
  if (!std::isnan(score.accuracy)) one.accuracy = score.accuracy;
  one.loss_low_energy = score.low_energy_loss;
  return one;
}

namespace {

void learn(const LearningWorld& world, const Validation& validation, std::size_t index,
           const Experiment& experiment, std::int64_t seed) {
  const RankContext& run = world.run;
  const Point& point = validation.point(index);
  set_status(run.state, fmt::format("{} (learning)", point.name).c_str());
  const RankId rank = run.transport.rank();
  Learner learner(experiment, world.backend,
                  {.rank = rank,
                   .batch = validation.variants[index].batch,
                   .data = learning_data(experiment),
                   .on_progress = [&run] { run.state.heartbeat.fetch_add(1); },
                   .compresses = validation.plan(index).compresses,
                   .transport = &run.transport});
  const auto device = learner.device();
  RankCollectives collectives(
      experiment.plan, read_all_reduces(all_reduce_file(run.folder), point.name, experiment.plan), rank);
  RealWorld real{.plan = experiment.plan,
                 .transport = run.transport,
                 .collective_thread = world.collective_thread,
                 .messages = world.messages,
                 .device = *device,
                 .collectives = collectives,
                 .completions = world.completions,
                 .state = run.state,
                 .polling = &run.polling,
                 .library = run.library,
                 .device_payloads = world.device_payloads,
                 .on_step_end = [&learner](double seconds) { learner.step_ended(seconds); }};
  if (world.make_collective_backend) real.collective_backend = world.make_collective_backend(experiment.plan);
  run_program(real, ++world.last_run);
  std::vector<EvaluatedLoss> evaluations;
  if (learner.holds_evaluated_parameters()) evaluations = learner.evaluate();
  if (rank == RankId(0)) {
    for (EvaluatedLoss& one : evaluations) {
      one.point = point.name;
      one.seed = seed;
      append_line(run.folder / "learning.jsonl", to_json_line({validation.scenario.name, {}}, to_row(one)));
    }
    if (seed == 1)
      save_checkpoint(run.folder / fmt::format("point-{}.parameters", validation.points[index] + 1),
                      experiment.model, learner.final_parameters());
  }
  barrier(run.transport);
}

/// Why the network, the data or the checkpoint do not fit together, or cannot be read; "" if they do.
std::string unfit_inputs(const Experiment& experiment) {
  try {
    const LearningTask task = task_of(experiment);
    const bool whole = experiment.plan.partition.form == ModelPartition::Form::none;
    if (task.discriminator && (!whole || experiment.plan.chooses_mini_batches))
      return "learning.discriminator: only a strategy whose workers train the whole network with gradients "
             "of their own mini-batches can train a generator and a discriminator";
    make_data(experiment.learning->data, task.form);
    if (experiment.learning->start) load_checkpoint(*experiment.learning->start, experiment.model);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

std::string unsupported_learning(const Experiment& experiment) {
  if (std::string why = lacking_kernel(experiment.model); !why.empty()) return why;
  const std::string& key = experiment.plan.no_arithmetic;
  if (!key.empty()) return "strategy." + key + " is only timed in real runs, so no network can learn with it";
  return unfit_inputs(experiment);
}

std::string unsupported_real_learning(const Experiment& experiment) {
  if (experiment.plan.partition.form == ModelPartition::Form::machines)
    return "strategy.machines_per_replica is only timed in real runs, so no network can learn with it";
  return unsupported_learning(experiment);
}

Overrides learning_overrides(const Experiment& timed, std::int64_t seed) {
  Overrides of_training;
  of_training.steps = static_cast<int>(learning_steps(timed));
  of_training.more_seed = seed - 1;
  return of_training;
}

void learn_all(const LearningWorld& world, const Validation& validation, Library& library) {
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const Experiment timed = measured_experiment(validation, i, world.run.folder, {}, library);
    if (!timed.learning) continue;
    for (std::int64_t seed = 1; seed <= timed.learning->seeds; ++seed) {
      const Experiment experiment =
          measured_experiment(validation, i, world.run.folder, learning_overrides(timed, seed), library);
      learn(world, validation, i, experiment, seed);
    }
  }
}

}  // namespace stepcast
