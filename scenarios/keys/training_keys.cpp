#include "scenarios/keys/scenario_keys.hpp"

namespace stepcast {

const Keys& checkpoint_keys() {
  static const Keys keys{
      {"interval", "time or name", ">= 1 ms, best", "required",
       "training time between two checkpoints; another checkpoint is written at the end; `best`: a search "
       "finds the interval (not valid with `shrink`)"},
      {"size", "bytes", ">= 0", "weights and optimizer state of a device", "size of a checkpoint"},
      {"bandwidth", "bandwidth", "> 0", "that of one node to the platform's storage",
       "rate at which a checkpoint is written; required if the platform has no storage"},
      {"background", "boolean", "", "false",
       "training stops only for `snapshot` and continues while the checkpoint is written; the next "
       "checkpoint waits until the storage is free"},
      {"snapshot", "time", ">= 0", "required with `background`",
       "time to copy the state before it is written"}};
  return keys;
}

const Keys& slow_keys() {
  static const Keys keys{
      {"share", "number", "0 to 1", "required", "share of the workers that are slow in a slow period"},
      {"factor", "number", "1 to 1e6", "required", "factor on the time of a slow worker's work"},
      {"lasts", "time", ">= 1 ms", "always slow",
       "length of a slow period; give both `lasts` and `every`, or neither"},
      {"every", "time", ">= 1 ms", "always slow",
       "mean time from the end of a slow period to the start of the next; the times are exponentially "
       "distributed"}};
  return keys;
}

const Keys& link_faults_keys() {
  static const Keys keys{
      {"links", "text", "", "this or `node`",
       "name of a link, with `*` for any text, `?` for any letter and `[...]` for one of several letters; "
       "all links that match fail together"},
      {"node", "integer", "0 to 1048575", "this or `links`", "the NICs of this node, both directions"},
      {"share", "number", "0 to 0.99", "0", "share of the bandwidth that is left; 0: the links are dead"},
      {"at", "time", ">= 0", "this or `mtbf`", "time from the start of the training; the links fail once"},
      {"mtbf", "time", ">= 1 s", "this or `at`",
       "mean time from a repair to the next failure; the times are exponentially distributed"},
      {"lasts", "time", ">= 1 ms", "required", "time until the links are repaired"}};
  return keys;
}

const Keys& faults_keys() {
  static const Keys keys{
      {"steps", "integer", ">= 1", "the scenario's epochs",
       "steps of the training; required without `epoch`"},
      {"node_mtbf", "time", ">= 1 s", "nodes never fail",
       "mean time between failures of one node that holds a rank; the times are exponentially distributed"},
      {"device_mtbf", "time", ">= 1 s", "none",
       "in place of `node_mtbf`: mean time between failures of one device, which works again afterwards; "
       "with `shrink`, only the share of this device is missing"},
      {"repair", "time", ">= 0", "0 s",
       "time until the node, or a spare node, is available; only valid with an MTBF of nodes or devices"},
      {"restart", "time", ">= 0", "0 s",
       "further time until the training continues; only valid with an MTBF or `links`"},
      {"answer", "name", "restart, shrink, automatic", "automatic",
       "what the training does when a node fails"},
      {"exchange", "time", ">= 0", "a block for local SGD, else a step",
       "`shrink`: time between two contributions of a worker; a node that fails loses the part that it has "
       "not contributed; not valid with `answer: restart`"},
      {"checkpoint", "mapping", "", "none are written", "when and how checkpoints are written",
       checkpoint_keys},
      {"slow", "mapping", "", "none", "periods in which workers are slow", slow_keys},
      {"links", "list of mappings", "", "none", "links that die or lose bandwidth", link_faults_keys},
      {"draws", "integer", "1 to 100,000", "64", "simulated trainings; the columns are their means"}};
  return keys;
}

const Keys& early_stopping_keys() {
  static const Keys keys{
      {"share", "number", "0 to 1", "required", "share of the points that are stopped"},
      {"after", "number", "0 to 1", "required", "part of the training after which these points are stopped"}};
  return keys;
}

const Keys& campaign_optimizer_keys() {
  static const Keys keys{
      {"by", "name", "bayesian, evolution, random, direct", "bayesian",
       "optimizer; only proposals of `bayesian` take time"},
      {"count", "integer", "1 to 1e6", "1", "number of optimizers; with `history: own` at most `groups`"},
      {"history", "name", "shared, own", "shared",
       "`own`: an optimizer serves only its own groups and learns only from their points"},
      {"generation", "integer", "0 to 1e6", "0; required for `evolution`",
       "number of points that must all end before the next points are proposed; 0: a group gets its next "
       "point as soon as it is free"}};
  return keys;
}

const Keys& proposal_keys() {
  static const Keys keys{
      {"base", "time", ">= 0", "18 ms", "a proposal after n points takes base + cubic n^3"},
      {"cubic", "time", ">= 0", "12 ns", "a proposal after n points takes base + cubic n^3"}};
  return keys;
}

const Keys& campaign_keys() {
  static const Keys keys{
      {"points", "integer", "1 to 1e6", "required", "points that are evaluated"},
      {"groups", "integer", "1 to 1e6", "1", "points that are evaluated at the same time"},
      {"folds", "integer", "1 to 1e6", "1", "trainings of each point"},
      {"folds_at_once", "integer", "1 to 1e6", "1",
       "folds of a point that are trained at the same time, at most `folds`"},
      {"point_spread", "number", "0 to 10", "0",
       "sigma of the logarithm of a lognormal factor of mean 1 for each point"},
      {"fold_spread", "number", "0 to 10", "0", "the same for each fold"},
      {"early_stopping", "mapping", "", "none", "a share of the points is stopped early",
       early_stopping_keys},
      {"optimizer", "mapping", "", "see its keys", "optimizer that proposes points", campaign_optimizer_keys},
      {"proposal", "mapping", "", "see its keys", "time of a proposal of a Gaussian process", proposal_keys},
      {"steps", "integer", ">= 1", "the scenario's epochs, or `learning.mini_batches`",
       "steps of one training; with `faults`, `faults.steps` counts instead"},
      {"draws", "integer", "1 to 1e6", "16", "simulated campaigns; the columns are their means"},
      {"over", "text", "", "required by `learn`",
       "`learn`: keys that the search chooses, in the form of `search --over`"},
      {"objective", "name", "loss, accuracy", "loss",
       "`learn`: mean over the folds that the search minimises or maximises"}};
  return keys;
}

const Keys& stack_value_keys() {
  static const Keys keys{
      {"key", "text", "", "required",
       "key of `strategy`, or a path such as `model.transformer_stack.dropout`"},
      {"value", "value", "", "required", "its value in this stack"},
      {"source", "text", "", "required", "where the value is from"},
      {"without_nccl", "boolean", "", "false",
       "the value holds only if the platform does not name NCCL, which makes its own choice"}};
  return keys;
}

const Keys& stack_keys() {
  static const Keys keys{
      {"name", "text", "", "required", "name of the software stack"},
      {"what", "text", "", "required", "how the stack exchanges gradients"},
      {"kind", "name", "", "none", "strategy that takes the place of `synchronous`"},
      {"values", "list of mappings", "", "required", "values of keys of a scenario", stack_value_keys}};
  return keys;
}

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
       {{"test_samples", "integer", "1 to 1e9", "1000",
         "held-out samples; from files, the first samples of `test`"}},
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
  static const Keys keys{
      {"point", "mapping of values", "", "required", "a point of the sweep"},
      {"over", "mapping of values", "", "required", "the point that it is compared with"},
      {"quantity", "name", "loss, accuracy, loss_low_energy, seconds, seconds_to_target, samples_to_target",
       "required",
       "what is compared; `seconds` are those at the end, `loss_low_energy` is a "
       "generator's"},
      {"relation", "name", "less_than, more_than, equal, at_most", "required",
       "the claim about `point`, compared with `over`"},
      {"within", "number", "0 to 1", "required with `relation: equal` and `at_most`",
       "largest difference, as a share of the quantity of `over`; `at_most`: how much "
       "larger the quantity may be"},
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
       "with `momentum`: the momentum; with `adam`: the decay of the first moment"},
      {"decay", "number", "0 to 0.999999999", "`rmsprop` 0.9, `adam` 0.999",
       "with `rmsprop` and `adam`: decay of the mean of squares"},
      {"epsilon", "number", "1e-30 to 1", "1e-8",
       "with `adagrad`, `rmsprop` and `adam`: added to the square root"},
      {"linear_scaling", "boolean", "", "false",
       "the mean of N gradients is applied with N times the learning rate (P. Goyal et al., "
       "arXiv:1706.02677)"},
      {"warm_up", "integer", "0 to 1e9", "0",
       "with `linear_scaling`: steps in which the rate grows linearly to N times `learning_rate`"},
      {"schedule", "list of mappings", "", "none", "changes of the learning rate", learning_schedule_keys},
      {"data", "mapping", "", "required", "training data", learning_data_keys},
      {"start", "path", "", "none",
       "checkpoint to begin with: `point-N.parameters` of `validate` or `training-N.parameters` of `learn "
       "--checkpoints`, of the same network"},
      {"discriminator", "text", "", "none",
       "name of the first layer of a discriminator: the layers before it generate samples, and both are "
       "trained against each other (a GAN)"},
      {"seed", "integer", "0 to 1e9", "1", "seed of the initial parameters"},
      {"seeds", "integer", "1 to 1000", "1",
       "trainings of each point; training k adds k - 1 to the seeds of parameters, simulation and generated "
       "data"},
      {"warm_start", "integer", "0 to 1e7", "0",
       "`learn`: mini-batches that one worker trains before all workers start from its parameters; not valid "
       "with "
       "`start`"},
      {"target_loss", "number", "0 to 1e9", "none",
       "loss whose time and samples `learn` and `validate` show; `validate` also forecasts them"},
      {"trends", "list of mappings", "", "none", "`learn`: claims about two points", learning_trend_keys}};
  return keys;
}

}  // namespace stepcast
