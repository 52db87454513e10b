#include "strategies/block.hpp"

namespace stepcast {
namespace {

/// Arrays that the filter reads and writes (block_momentum.hpp); plain averaging is done by the sum.
double filter_arrays(const BlockFilter& filter) {
  if (filter.momentum == 0 && filter.learning_rate == 1) return 0;
  return filter.form == BlockFilter::Form::nesterov ? 7 : 5;  // mean, D, W, D, W; and W_g twice
}

double sum_of(const Workload& workload, double LayerSeconds::*pass) {
  double seconds = 0;
  for (const LayerSeconds& layer : workload.median) seconds += layer.*pass;
  return seconds;
}

/// Mini-batches that a worker goes through in a validation, or pays for in a block.
double validation_batches(const BlockSetup& setup) {
  const BlockValidation& validation = setup.validation;
  const BlockTraining& training = setup.training;
  if (validation.spread) return training.mini_batches * validation.samples / validation.every;
  return training.mini_batches * validation.samples / training.block_samples;
}

}  // namespace

void add_block_work(const Workload& workload, BlockSetup& setup) {
  BlockTraining& training = setup.training;
  const double forward = sum_of(workload, &LayerSeconds::forward);
  training.split_seconds = {training.mini_batches * (forward + sum_of(workload, &LayerSeconds::backward) +
                                                     sum_of(workload, &LayerSeconds::update))};
  training.split = static_cast<double>(training.mini_batches) * workload.input;
  const double inside = setup.workers_per_replica;
  training.filter_work = {"filter", (filter_arrays(training.filter) / inside) * setup.array_seconds,
                          setup.filters ? filter_arithmetic(training.filter, training.replicas)
                                        : average_arithmetic(training.replicas)};
  const BlockValidation& validation = setup.validation;
  if (validation.every == 0) return;
  if (!validation.spread) training.validation_every = validation.every;
  training.validation_work = {
      "validate", {validation_batches(setup) * validation.compute_factor * forward}, nullptr};
}

}  // namespace stepcast
