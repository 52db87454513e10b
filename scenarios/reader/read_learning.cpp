#include "scenarios/reader/read_learning.hpp"

#include <fmt/format.h>

#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/read_figures.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kMost = 1'000'000'000;

const std::vector<std::string> kOptimizers{"sgd", "momentum", "adagrad", "rmsprop", "adam"};

Optimizer read_optimizer(const YamlMap& map) {
  using Kind = Optimizer::Kind;
  const auto named = map.maybe("optimizer");
  const std::size_t number = named ? named->one_of(kOptimizers) : 1;
  Optimizer optimizer;
  optimizer.kind = number < 2 ? Kind::sgd : static_cast<Kind>(number - 1);
  if (number == 0) optimizer.momentum = 0;
  if (optimizer.kind == Kind::rmsprop) optimizer.decay = 0.9;
  if (const auto momentum = map.maybe("momentum")) {
    if (number != 1 && number != 4) momentum->refuse("only valid with optimizer: momentum and adam");
    optimizer.momentum = momentum->number(0, 0.999999);
  }
  if (const auto decay = map.maybe("decay")) {
    if (number != 3 && number != 4) decay->refuse("only valid with optimizer: rmsprop and adam");
    optimizer.decay = decay->number(0, 0.999999999);
  }
  if (const auto epsilon = map.maybe("epsilon")) {
    if (number < 2) epsilon->refuse("only valid with optimizer: adagrad, rmsprop and adam");
    optimizer.epsilon = epsilon->number(1e-30, 1);
  }
  return optimizer;
}

LearningRate read_rate(const YamlMap& map) {
  LearningRate rate;
  rate.base = map.at("learning_rate", "a number > 0").number(1e-12, 1e6);
  if (const auto linear = map.maybe("linear_scaling")) rate.linear = linear->boolean();
  if (const auto steps = map.maybe("warm_up")) {
    if (!rate.linear) steps->refuse("only valid with linear_scaling: true");
    rate.warm_up = steps->integer(0, kMost);
  }
  if (const auto schedule = map.maybe("schedule")) {
    for (const YamlValue& change : schedule->list()) {
      const YamlMap entry = read_map(change, learning_schedule_keys());
      rate.schedule.push_back({entry.at("after", "a number of steps").integer(1, kMost),
                               entry.at("factor", "a number > 0").number(1e-12, 1e6)});
    }
    if (rate.schedule.size() > kMostEntries)
      schedule->refuse(fmt::format("more than {} changes", kMostEntries));
  }
  return rate;
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

DataOptions read_generated(const YamlValue& value, DataOptions options) {
  const YamlMap map =
      read_map(value, learning_data_keys(), data_kind_names()[static_cast<std::size_t>(options.kind)]);
  if (const auto samples = map.maybe("samples")) options.samples = samples->integer(1, kMost);
  if (const auto samples = map.maybe("test_samples")) options.test_samples = samples->integer(1, kMost);
  if (const auto noise = map.maybe("noise")) options.noise = noise->number(0, 1000);
  if (const auto seed = map.maybe("seed")) options.seed = static_cast<std::uint64_t>(seed->integer(0));
  return options;
}

DataOptions read_data_files(const YamlValue& value, DataOptions options) {
  const bool idx = options.kind == DataOptions::Kind::idx;
  const YamlMap map =
      read_map(value, learning_data_keys(), data_kind_names()[static_cast<std::size_t>(options.kind)]);
  options.train = read_files(map, "train", idx);
  options.test = read_files(map, "test", idx);
  if (idx) options.train_labels = read_files(map, "train_labels", true);
  if (idx) options.test_labels = read_files(map, "test_labels", true);
  if (const auto samples = map.maybe("test_samples")) options.test_samples = samples->integer(1, kMost);
  return options;
}

DataOptions read_learning_data(const YamlValue& value) {
  DataOptions options;
  options.kind = static_cast<DataOptions::Kind>(
      value.any_map().at("kind", "what to learn from").one_of(data_kind_names()));
  return is_generated(options.kind) ? read_generated(value, options) : read_data_files(value, options);
}

LearningTrend read_trend(const YamlValue& value) {
  const YamlMap map = read_map(value, learning_trend_keys());
  LearningTrend trend;
  trend.point = read_point(map.at("point", "the values of one point"));
  trend.over = read_point(map.at("over", "the point that it is compared with"));
  trend.quantity =
      learning_quantities()[map.at("quantity", "what is compared").one_of(learning_quantities())];
  trend.relation =
      static_cast<LearningTrend::Relation>(map.at("relation", "less_than, more_than, equal or at_most")
                                               .one_of({"less_than", "more_than", "equal", "at_most"}));
  const bool near = trend.relation >= LearningTrend::Relation::equal;
  if (near)
    trend.within = map.at("within", "largest difference, a share of the quantity").number(0, 1);
  else if (const auto within = map.maybe("within"))
    within->refuse("only valid with relation: equal or at_most");
  trend.source = map.at("source", "where the claim is from").text();
  return trend;
}

}  // namespace

const std::vector<std::string>& learning_quantities() {
  static const std::vector<std::string> names{"loss",    "accuracy",          "loss_low_energy",
                                              "seconds", "seconds_to_target", "samples_to_target"};
  return names;
}

LearningOptions read_learning(const YamlValue& value) {
  const YamlMap map = read_map(value, learning_keys());
  LearningOptions options;
  options.mini_batches = static_cast<int>(
      map.at("mini_batches", "mini-batches of a worker, an integer >= 1").integer(1, 10'000'000));
  options.evaluate_every = options.mini_batches;
  if (const auto every = map.maybe("evaluate_every"))
    options.evaluate_every = static_cast<int>(every->integer(1, 10'000'000));
  options.optimizer = read_optimizer(map);
  options.rate = read_rate(map);
  options.data = read_learning_data(map.at("data", "a mapping with kind"));
  if (const auto start = map.maybe("start")) options.start = start->text();
  if (const auto layer = map.maybe("discriminator")) options.discriminator = layer->text();
  if (const auto seed = map.maybe("seed"))
    options.seed = static_cast<std::uint64_t>(seed->integer(0, 1'000'000'000));
  if (const auto seeds = map.maybe("seeds")) options.seeds = static_cast<int>(seeds->integer(1, 1000));
  if (const auto batches = map.maybe("warm_start")) {
    if (options.start) batches->refuse("not valid with start");
    options.warm_start = static_cast<int>(batches->integer(0, 10'000'000));
  }
  if (const auto target = map.maybe("target_loss")) options.target_loss = target->number(0, 1e9);
  if (const auto trends = map.maybe("trends")) {
    const auto list = trends->list();
    if (list.size() > kMostEntries) trends->refuse(fmt::format("more than {} trends", kMostEntries));
    for (const YamlValue& trend : list) {
      options.trends.push_back(read_trend(trend));
      const std::string& quantity = options.trends.back().quantity;
      if (quantity.ends_with("_to_target") && !options.target_loss)
        trend.refuse(fmt::format("{} needs learning.target_loss", quantity));
    }
  }
  return options;
}

}  // namespace stepcast
