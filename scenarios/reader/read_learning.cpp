#include "scenarios/reader/read_learning.hpp"

#include <fmt/format.h>

#include "core/fields.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/read_figures.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kMost = 1'000'000'000;

/// The optimizers by their words: `sgd` is Optimizer::Kind::sgd without momentum.
enum class UpdateName { sgd, momentum, adagrad, rmsprop, adam };

const Words<UpdateName>& update_names_of_learning() {
  static const Words<UpdateName> words{{"sgd", UpdateName::sgd},
                                       {"momentum", UpdateName::momentum},
                                       {"adagrad", UpdateName::adagrad},
                                       {"rmsprop", UpdateName::rmsprop},
                                       {"adam", UpdateName::adam}};
  return words;
}

void read_update(const YamlValue& value, LearningOptions& options) {
  using Kind = Optimizer::Kind;
  Optimizer& optimizer = options.optimizer;
  switch (update_names_of_learning().read(value)) {
    case UpdateName::sgd:
      optimizer.momentum = 0;
      break;
    case UpdateName::momentum:
      break;
    case UpdateName::adagrad:
      optimizer.kind = Kind::adagrad;
      break;
    case UpdateName::rmsprop:
      optimizer.kind = Kind::rmsprop;
      optimizer.decay = 0.9;
      break;
    case UpdateName::adam:
      optimizer.kind = Kind::adam;
      break;
  }
}

const Fields<Optimizer>& optimizer_fields() {
  static const Fields<Optimizer> fields{
      field("momentum", &Optimizer::momentum, number(0, 0.999999),
            "with `momentum`: the momentum; with `adam`: the decay of the first moment"),
      field("decay", &Optimizer::decay, number(0, 0.999999999), otherwise("`rmsprop` 0.9, `adam` 0.999"),
            "with `rmsprop` and `adam`: decay of the mean of squares"),
      field("epsilon", &Optimizer::epsilon, number(1e-30, 1),
            "with `adagrad`, `rmsprop` and `adam`: added to the square root")};
  return fields;
}

/// Refuses keys that the named optimizer does not have.
void check_optimizer(const YamlMap& map) {
  const auto named = map.maybe("optimizer");
  const UpdateName name = named ? update_names_of_learning().read(*named) : UpdateName::momentum;
  const bool adam = name == UpdateName::adam;
  if (map.has("momentum") && name != UpdateName::momentum && !adam)
    map.at("momentum").refuse("only valid with optimizer: momentum and adam");
  if (map.has("decay") && name != UpdateName::rmsprop && !adam)
    map.at("decay").refuse("only valid with optimizer: rmsprop and adam");
  if (map.has("epsilon") && (name == UpdateName::sgd || name == UpdateName::momentum))
    map.at("epsilon").refuse("only valid with optimizer: adagrad, rmsprop and adam");
}

const Fields<RateChange>& schedule_fields() {
  static const Fields<RateChange> fields{
      field("after", &RateChange::after, integer(1, kMost), required("a number of steps"),
            "steps after which the rate changes"),
      field("factor", &RateChange::factor, number(1e-12, 1e6), required("a number > 0"),
            "what the rate is multiplied by")};
  return fields;
}

const Fields<LearningRate>& base_rate_fields() {
  static const Fields<LearningRate> fields{field("learning_rate", &LearningRate::base, number(1e-12, 1e6),
                                                 required("a number > 0"),
                                                 "learning rate for the mini-batch of one worker")};
  return fields;
}

const Fields<LearningRate>& rate_fields() {
  static const Fields<LearningRate> fields{
      field("linear_scaling", &LearningRate::linear, boolean(),
            "the mean of N gradients is applied with N times the learning rate (P. Goyal et al., "
            "arXiv:1706.02677)"),
      field("warm_up", &LearningRate::warm_up, integer(0, kMost),
            "with `linear_scaling`: steps in which the rate grows linearly to N times `learning_rate`"),
      field("schedule", &LearningRate::schedule, list_of<schedule_fields>(), "changes of the learning rate")};
  return fields;
}

void check_rate(const YamlMap& map, const LearningRate& rate) {
  if (map.has("warm_up") && !rate.linear) map.at("warm_up").refuse("only valid with linear_scaling: true");
  if (rate.schedule.size() > kMostEntries)
    map.at("schedule").refuse(fmt::format("more than {} changes", kMostEntries));
}

std::vector<std::string> read_files(const YamlMap& map, const char* key, bool single) {
  const YamlValue value = map.at(key, single ? "a file" : "a file, or a list of files");
  std::vector<std::string> files;
  if (value.is(YamlNode::Kind::sequence) && !single) {
    for (const YamlValue& file : value.list()) files.push_back(file.text());
    if (files.empty()) value.expected("a list of files that is not empty");
  } else {
    files.push_back(value.text());
  }
  return files;
}

constexpr auto kGenerated = "images, mesh, sequences, showers";
constexpr auto kFiles = "idx, cifar10, raw";

const Fields<DataOptions>& data_option_fields() {
  static const Fields<DataOptions> fields{
      field("kind", &DataOptions::kind, choice(data_kind_words()), required("what to learn from"),
            "the generated task, or the format of the files"),
      only_with(kGenerated, {field("samples", &DataOptions::samples, integer(1, kMost), "training samples")}),
      only_with(kFiles, {field<DataOptions>({"train", Allowed({KeyType::text, KeyType::texts}), "required",
                                             "files with samples to train on; one file for `idx`"}),
                         field<DataOptions>({"test", Allowed({KeyType::text, KeyType::texts}), "required",
                                             "files with held-out samples; one file for `idx`"})}),
      field("test_samples", &DataOptions::test_samples, integer(1, kMost),
            "held-out samples; from files, the first samples of `test`"),
      only_with(kGenerated, {field("noise", &DataOptions::noise, number(0, 1000),
                                   "standard deviation of the noise; the signal is of order 1"),
                             field("seed", &DataOptions::seed, integer(0), "seed of the samples")}),
      only_with("idx", {field<DataOptions>(
                            {"train_labels", KeyType::path, "required", "labels of the samples to train on"}),
                        field<DataOptions>(
                            {"test_labels", KeyType::path, "required", "labels of the held-out samples"})})};
  return fields;
}

void read_learning_data(const YamlValue& value, LearningOptions& learning) {
  DataOptions& options = learning.data;
  const DataOptions::Kind kind = data_kind_words().read(value.any_map().at("kind", "what to learn from"));
  const YamlMap map = read_mapping(value, data_option_fields(), options, data_kind_words().of(kind));
  if (is_generated(options.kind)) return;
  const bool idx = options.kind == DataOptions::Kind::idx;
  options.train = read_files(map, "train", idx);
  options.test = read_files(map, "test", idx);
  if (idx) options.train_labels = read_files(map, "train_labels", true);
  if (idx) options.test_labels = read_files(map, "test_labels", true);
}

void check_trend(const YamlMap& map, LearningTrend& trend) {
  const bool near = trend.relation >= LearningTrend::Relation::equal;
  if (near) map.at("within", "largest difference, a share of the quantity");
  if (map.has("within") && !near) map.at("within").refuse("only valid with relation: equal or at_most");
}

const Fields<LearningTrend>& trend_fields() {
  using Relation = LearningTrend::Relation;
  static const Fields<LearningTrend> fields{
      {field("point", &LearningTrend::point, point_values(), required("the values of one point"),
             "a point of the sweep"),
       field("over", &LearningTrend::over, point_values(), required("the point that it is compared with"),
             "the point that it is compared with"),
       field("quantity", &LearningTrend::quantity, one_of(learning_quantities()),
             required("what is compared"),
             "what is compared; `seconds` are those at the end, `loss_low_energy` is a generator's"),
       field("relation", &LearningTrend::relation,
             choice<Relation>({{"less_than", Relation::less_than},
                               {"more_than", Relation::more_than},
                               {"equal", Relation::equal},
                               {"at_most", Relation::at_most}}),
             required("less_than, more_than, equal or at_most"),
             "the claim about `point`, compared with `over`"),
       field("within", &LearningTrend::within, number(0, 1),
             otherwise("required with `relation: equal` and `at_most`"),
             "largest difference, as a share of the quantity of `over`; `at_most`: how much larger the "
             "quantity may be"),
       field("source", &LearningTrend::source, text(), required("where the claim is from"),
             "where the claim is from")},
      check_trend};
  return fields;
}

void check_trends(const YamlMap& map, const LearningOptions& options) {
  if (options.trends.size() > kMostEntries)
    map.at("trends").refuse(fmt::format("more than {} trends", kMostEntries));
  for (std::size_t i = 0; i < options.trends.size(); ++i) {
    const std::string& quantity = options.trends[i].quantity;
    if (quantity.ends_with("_to_target") && !options.target_loss)
      map.at("trends").list()[i].refuse(fmt::format("{} needs learning.target_loss", quantity));
  }
}

void check_learning(const YamlMap& map, LearningOptions& options) {
  if (!map.has("evaluate_every")) options.evaluate_every = options.mini_batches;
  check_optimizer(map);
  check_rate(map, options.rate);
  if (map.has("warm_start") && options.start) map.at("warm_start").refuse("not valid with start");
  check_trends(map, options);
}

const Fields<LearningOptions>& learning_fields() {
  using Options = LearningOptions;
  static const Fields<Options> fields{
      {field("mini_batches", &Options::mini_batches, integer(1, 10'000'000),
             required("mini-batches of a worker, an integer >= 1"),
             "mini-batches of each worker; strategies with blocks of local training round up to whole "
             "blocks"),
       field("evaluate_every", &Options::evaluate_every, integer(1, 10'000'000), otherwise("mini_batches"),
             "mini-batches of worker 0 between two evaluations on held-out data; the last state is always "
             "evaluated"),
       field<Options>({"optimizer", choice(update_names_of_learning()), "momentum",
                       "optimizer of every worker and of servers"},
                      read_update),
       part(&Options::rate, base_rate_fields()), part(&Options::optimizer, optimizer_fields()),
       part(&Options::rate, rate_fields()),
       field<Options>(
           {"data", KeyType::mapping, "required", "training data", keys_inside<data_option_fields>},
           read_learning_data, "a mapping with kind"),
       field("start", &Options::start, text({KeyType::path}),
             "checkpoint to begin with: `point-N.parameters` of `validate` or `training-N.parameters` of "
             "`learn --checkpoints`, of the same network"),
       field("discriminator", &Options::discriminator, text(),
             "name of the first layer of a discriminator: the layers before it generate samples, and both "
             "are trained against each other (a GAN)"),
       field("seed", &Options::seed, integer(0, kMost), "seed of the initial parameters"),
       field("seeds", &Options::seeds, integer(1, 1000),
             "trainings of each point; training k adds k - 1 to the seeds of parameters, simulation and "
             "generated data"),
       field("warm_start", &Options::warm_start, integer(0, 10'000'000),
             "`learn`: mini-batches that one worker trains before all workers start from its parameters; not "
             "valid with `start`"),
       field("target_loss", &Options::target_loss, number(0, 1e9),
             "loss whose time and samples `learn` and `validate` show; `validate` also forecasts them"),
       field("trends", &Options::trends, list_of<trend_fields>(), "`learn`: claims about two points")},
      check_learning};
  return fields;
}

}  // namespace

const Keys& learning_keys() {
  return learning_fields().keys();
}

const std::vector<std::string>& learning_quantities() {
  static const std::vector<std::string> names{"loss",    "accuracy",          "loss_low_energy",
                                              "seconds", "seconds_to_target", "samples_to_target"};
  return names;
}

LearningOptions read_learning(const YamlValue& value) {
  LearningOptions options;
  read_mapping(value, learning_fields(), options);
  return options;
}

}  // namespace stepcast
