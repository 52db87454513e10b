#include "scenarios/keys/scenario_keys.hpp"

namespace stepcast {
namespace {

constexpr auto kGenerated = "images, mesh, sequences, showers";
constexpr auto kFiles = "idx, cifar10, raw";

}  // namespace

const Keys& learning_data_keys() {
  static const Keys keys = joined_keys(
      {{{"kind", "name", "images, mesh, sequences, showers, idx, cifar10, raw", "required",
         "the generated task, or the format of the files"}},
       only_with(kGenerated, {{"samples", "integer", "1 to 1e9", "4096", "training samples"}}),
       only_with(kFiles, {{"train", "text or list of texts", "", "required",
                           "files with samples to train on; one file for `idx`"},
                          {"test", "text or list of texts", "", "required",
                           "files with held-out samples; one file for `idx`"}}),
       {{"test_samples", "integer", "1 to 1e9", "1000", "held-out samples; of files, the first of `test`"}},
       only_with(kGenerated, {{"noise", "number", "0 to 1000", "0.5",
                               "standard deviation of the noise; the signal is of order 1"},
                              {"seed", "integer", ">= 0", "1", "seed of the samples"}}),
       only_with("idx", {{"train_labels", "path", "", "required", "labels of the samples to train on"},
                         {"test_labels", "path", "", "required", "labels of the held-out samples"}})});
  return keys;
}

const Keys& learning_schedule_keys() {
  static const Keys keys{{"after", "integer", "1 to 1e9", "required", "steps after which the rate changes"},
                         {"factor", "number", "1e-12 to 1e6", "required", "what the rate is multiplied by"}};
  return keys;
}

const Keys& learning_trend_keys() {
  static const Keys keys{{"point", "mapping of values", "", "required", "a point of the sweep"},
                         {"over", "mapping of values", "", "required", "the point that it is compared with"},
                         {"quantity", "name", "loss, accuracy, seconds, seconds_to_target, samples_to_target",
                          "required", "what is compared; `seconds` are those at the end"},
                         {"relation", "name", "less_than, more_than, equal", "required",
                          "the claim about `point`, compared with `over`"},
                         {"within", "number", "0 to 1", "required with `relation: equal`",
                          "largest difference, as a share of the quantity of `over`"},
                         {"source", "text", "", "required", "where the claim is from"}};
  return keys;
}

const Keys& learning_keys() {
  static const Keys keys{
      {"mini_batches", "integer", "1 to 1e7", "required",
       "mini-batches of each worker; strategies with blocks of local training round up to whole blocks"},
      {"evaluate_every", "integer", "1 to 1e7", "mini_batches",
       "mini-batches of worker 0 between two evaluations on held-out data; the last state is always "
       "evaluated"},
      {"optimizer", "name", "sgd, momentum, adagrad, rmsprop, adam", "momentum",
       "optimizer of every worker and of servers"},
      {"learning_rate", "number", "1e-12 to 1e6", "required",
       "learning rate for the mini-batch of one worker"},
      {"momentum", "number", "0 to 0.999999", "0.9",
       "momentum, with `momentum`; with `adam` the decay of the first moment"},
      {"decay", "number", "0 to 0.999999999", "`rmsprop` 0.9, `adam` 0.999",
       "decay of the mean of squares, with `rmsprop` and `adam`"},
      {"epsilon", "number", "1e-30 to 1", "1e-8", "added to roots, with `adagrad`, `rmsprop` and `adam`"},
      {"linear_scaling", "boolean", "", "false",
       "the mean of N gradients is applied with N times the learning rate (P. Goyal et al., "
       "arXiv:1706.02677)"},
      {"warm_up", "integer", "0 to 1e9", "0",
       "steps in which the rate grows to N times `learning_rate`, by equal steps, with `linear_scaling`"},
      {"schedule", "list of mappings", "", "none", "changes of the learning rate", learning_schedule_keys},
      {"data", "mapping", "", "required", "training data", learning_data_keys},
      {"start", "path", "", "none",
       "checkpoint to begin with: `point-N.parameters` of `validate` or `training-N.parameters` of `learn "
       "--checkpoints`, of the same network"},
      {"seed", "integer", "0 to 1e9", "1", "seed of the initial parameters"},
      {"seeds", "integer", "1 to 1000", "1",
       "`learn`: trainings of each point; training k adds k - 1 to the seeds of parameters, simulation and "
       "generated "
       "data"},
      {"warm_start", "integer", "0 to 1e7", "0",
       "`learn`: mini-batches that one worker trains before all workers start from its parameters; not valid "
       "with "
       "`start`"},
      {"target_loss", "number", "0 to 1e9", "the lowest loss that every training reaches",
       "`learn`: loss whose time and samples the table shows"},
      {"trends", "list of mappings", "", "none", "`learn`: claims about two points", learning_trend_keys}};
  return keys;
}

}  // namespace stepcast
