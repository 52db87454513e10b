#include "validate/learner.hpp"

#include <algorithm>
#include <cmath>

#include "validate/real_collectives.hpp"
#include "validate/whole_parameters.hpp"

namespace stepcast {
namespace {

bool is_shared(const Experiment& experiment) {
  return experiment.plan.sharing.form == NetworkSharing::Form::blocks;
}

/// Ranks that work on the same samples.
int group_size(const Experiment& experiment) {
  return is_shared(experiment) ? experiment.plan.sharing.ways : 1;
}

SharedNetwork own_network(Backend& backend, const Experiment& experiment, int rank, std::int64_t batch) {
  const int ways = group_size(experiment);
  NetworkOptions options;
  options.batch = batch;
  options.data_seed = static_cast<std::uint64_t>(1 + rank / ways);
  options.optimizer = experiment.learning->optimizer;
  if (is_shared(experiment))
    return shared_network(backend, experiment.model, experiment.plan.sharing, rank % ways, options);
  return {nullptr, std::make_unique<Network>(backend, experiment.model, options)};
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
      own_(own_network(*backend_, experiment, options_.rank, options_.batch)),
      batches_(*options_.data->train, task_.form,
               {.worker = group(),
                .workers = experiment.plan.workers / group_size(experiment),
                .batch = options_.batch}) {
  if (experiment.learning->start) {
    start_ = load_checkpoint(*experiment.learning->start, experiment.model);
    if (own_.part)
      start_ = parameters_of_part(start_, experiment.model, experiment.plan.sharing,
                                  options_.rank % group_size(experiment));
  }
  if (options_.rank < experiment.plan.workers)
    batches_.prepare(experiment.learning->mini_batches * experiment.plan.batch_per_worker / options_.batch,
                     options_.beat);
}

/// Number of the worker, or of those that share one's work; ranks beyond them learn nothing.
int Learner::group() const {
  return std::min(options_.rank, experiment_.plan.workers - 1) / group_size(experiment_);
}

std::unique_ptr<RankDevice> Learner::device() {
  return own_.part ? tensor_device(own_, learning()) : kernel_device(network(), learning());
}

DeviceLearning Learner::learning() {
  DeviceLearning learning;
  learning.compresses = options_.compresses;
  learning.place = options_.rank;
  learning.rate = experiment_.learning->rate;
  learning.summed = experiment_.plan.summed_gradients;
  learning.owned = scattered_parts(experiment_.plan, options_.rank, ArrayMap(network()));
  learning.next_batch = [this] {
    const Batches::Batch& batch = batches_.next();
    network().input().write(batch.inputs);
    network().kernel(task_.loss_layer).targets()->write(batch.targets);
  };
  learning.start = [this](Network& network) {
    if (!start_.empty()) write_parameters(network, start_);
    take_snapshot(0);
  };
  return learning;
}

void Learner::take_snapshot(double seconds) {
  const ParameterView& all = network().all_parameters();
  snapshots_.push_back({done_, seconds, {all.value, all.value + all.elements}});
}

void Learner::step_ended(double seconds) {
  const std::int64_t before = done_;
  done_ += mini_batches_a_step(experiment_.plan);
  const int every = experiment_.learning->evaluate_every;
  if (has_rows() && done_ / every > before / every) take_snapshot(seconds);
}

bool Learner::has_rows() const {
  return options_.rank < group_size(experiment_);
}

std::vector<Row> Learner::rows() {
  const Dataset& test = *options_.data->test;
  std::unique_ptr<HeldOut> held_out;
  if (options_.rank == 0)
    held_out = std::make_unique<HeldOut>(*backend_, experiment_.model, task_, test,
                                         std::min(experiment_.learning->data.test_samples, test.samples()));
  std::vector<Row> rows;
  for (const Snapshot& snapshot : snapshots_) {
    std::copy(snapshot.values.begin(), snapshot.values.end(), network().all_parameters().value);
    last_ = read_parameters(network());
    if (own_.part)
      last_ = whole_parameters(*options_.transport, experiment_.model, experiment_.plan.sharing, last_);
    if (held_out) rows.push_back(row_of(snapshot, held_out->score(last_, options_.beat)));
  }
  return rows;
}

Row Learner::row_of(const Snapshot& snapshot, const Score& score) const {
  const Plan& plan = experiment_.plan;
  const auto each = static_cast<double>(mini_batches_a_step(plan));
  Row row;
  row.set("strategy", experiment_.strategy);
  row.set("ranks", static_cast<std::int64_t>(plan.endpoints.size()));
  row.set("step", snapshot.mini_batches);
  row.set("mini_batches_a_step", mini_batches_a_step(plan));
  row.set("samples", static_cast<double>(snapshot.mini_batches) * plan.samples_a_step / each);
  row.set("seconds", snapshot.seconds);
  row.set("loss", score.loss);
  if (!std::isnan(score.accuracy)) row.set("accuracy", score.accuracy);
  return row;
}

}  // namespace stepcast
