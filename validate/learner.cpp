#include "validate/learner.hpp"

#include <algorithm>
#include <cmath>

#include "validate/held_out.hpp"
#include "validate/real_collectives.hpp"

namespace stepcast {
namespace {

NetworkOptions network_options(const Experiment& experiment, int rank, std::int64_t batch) {
  NetworkOptions options;
  options.batch = batch;
  options.data_seed = static_cast<std::uint64_t>(1 + rank);
  options.optimizer = experiment.learning->optimizer;
  return options;
}

}  // namespace

std::int64_t mini_batches_a_step(const Plan& plan) {
  const double all = static_cast<double>(plan.batch_per_worker) * plan.workers;
  return std::max<std::int64_t>(1, std::llround(plan.samples_a_step / all));
}

std::int64_t learning_steps(const Experiment& experiment) {
  const std::int64_t each = mini_batches_a_step(experiment.plan);
  return (experiment.learning->mini_batches + each - 1) / each;
}

std::shared_ptr<const TrainAndTest> learning_data(const Experiment& experiment) {
  return std::make_shared<const TrainAndTest>(
      make_data(experiment.learning->data, learning_task(experiment.model).form));
}

Learner::Learner(const Experiment& experiment, Options options)
    : experiment_(experiment),
      options_(std::move(options)),
      task_(learning_task(experiment.model)),
      backend_(make_onednn_backend()),
      network_(*backend_, experiment.model, network_options(experiment, options_.rank, options_.batch)),
      batches_(*options_.data->train, task_.form,
               {.worker = std::min(options_.rank, experiment.plan.workers - 1),
                .workers = experiment.plan.workers,
                .batch = options_.batch}) {
  if (experiment.learning->start) start_ = load_checkpoint(*experiment.learning->start, experiment.model);
  if (options_.rank < experiment.plan.workers)
    batches_.prepare(experiment.learning->mini_batches * experiment.plan.batch_per_worker / options_.batch,
                     options_.beat);
}

DeviceLearning Learner::learning() {
  DeviceLearning learning;
  learning.compresses = options_.compresses;
  learning.place = options_.rank;
  learning.rate = experiment_.learning->rate;
  learning.summed = experiment_.plan.summed_gradients;
  learning.owned = scattered_parts(experiment_.plan, options_.rank, ArrayMap(network_));
  learning.next_batch = [this] {
    const Batches::Batch& batch = batches_.next();
    network_.input().write(batch.inputs);
    network_.kernel(task_.loss_layer).targets()->write(batch.targets);
  };
  learning.start = [this](Network& network) {
    if (!start_.empty()) write_parameters(network, start_);
    take_snapshot(0);
  };
  return learning;
}

void Learner::take_snapshot(double seconds) {
  const ParameterView& all = network_.all_parameters();
  snapshots_.push_back({done_, seconds, {all.value, all.value + all.elements}});
}

void Learner::step_ended(double seconds) {
  const std::int64_t before = done_;
  done_ += mini_batches_a_step(experiment_.plan);
  const int every = experiment_.learning->evaluate_every;
  if (options_.rank == 0 && done_ / every > before / every) take_snapshot(seconds);
}

std::vector<Row> Learner::rows() {
  const Dataset& test = *options_.data->test;
  HeldOut held_out(*backend_, experiment_.model, task_, test,
                   std::min(experiment_.learning->data.test_samples, test.samples()));
  const double samples_a_mini_batch =
      static_cast<double>(experiment_.plan.batch_per_worker) * experiment_.plan.workers;
  std::vector<Row> rows;
  for (const Snapshot& snapshot : snapshots_) {
    std::copy(snapshot.values.begin(), snapshot.values.end(), network_.all_parameters().value);
    last_ = read_parameters(network_);
    const Score score = held_out.score(last_, options_.beat);
    Row row;
    row.set("strategy", experiment_.strategy);
    row.set("ranks", static_cast<std::int64_t>(experiment_.plan.endpoints.size()));
    row.set("step", snapshot.mini_batches);
    row.set("mini_batches_a_step", mini_batches_a_step(experiment_.plan));
    row.set("samples", static_cast<double>(snapshot.mini_batches) * samples_a_mini_batch);
    row.set("seconds", snapshot.seconds);
    row.set("loss", score.loss);
    if (!std::isnan(score.accuracy)) row.set("accuracy", score.accuracy);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepcast
