#include "scenarios/reader/read_learning.hpp"

#include <catch2/catch.hpp>

namespace stepcast {
namespace {

LearningOptions read(const std::string& text) {
  const YamlNode node = parse_yaml(text, "s.yaml");
  return read_learning(YamlValue(node, "learning"));
}

constexpr const char* kStart = "{mini_batches: 10, learning_rate: 0.1, data: {kind: images}";

}  // namespace

TEST_CASE("learning is read with its defaults", "[scenarios]") {
  const LearningOptions options = read(std::string(kStart) + "}");
  CHECK(options.mini_batches == 10);
  CHECK(options.evaluate_every == 10);
  CHECK(options.optimizer.kind == Optimizer::Kind::sgd);
  CHECK(options.optimizer.momentum == 0.9);
  CHECK(options.rate.base == 0.1);
  CHECK(!options.rate.linear);
  CHECK(options.data.kind == DataOptions::Kind::images);
  CHECK(options.data.samples == 4096);
  CHECK(!options.start);
  CHECK(options.seed == 1);
  CHECK(options.seeds == 1);
  CHECK(options.warm_start == 0);
  CHECK(!options.target_loss);
  CHECK(options.trends.empty());
}

TEST_CASE("learning has seeds, a warm start, a schedule of rates and trends", "[scenarios]") {
  const LearningOptions options = read(
      std::string(kStart) +
      ", seeds: 5, warm_start: 20, target_loss: 0.5, schedule: [{after: 6, factor: 0.1}], trends: [{point: "
      "{workers: 8}, over: {workers: 1}, quantity: seconds_to_target, relation: less_than, source: a}]}");
  CHECK(options.seeds == 5);
  CHECK(options.warm_start == 20);
  CHECK(options.target_loss == 0.5);
  REQUIRE(options.rate.schedule.size() == 1);
  CHECK(options.rate.schedule[0].after == 6);
  CHECK(options.rate.schedule[0].factor == 0.1);
  REQUIRE(options.trends.size() == 1);
  CHECK(options.trends[0].point.front().path == "workers");
  CHECK(options.trends[0].quantity == "seconds_to_target");
  CHECK(options.trends[0].relation == LearningTrend::Relation::less_than);
}

TEST_CASE("a trend may say that two points are equal, or that one is not larger, within a share",
          "[scenarios]") {
  const auto trend = [](const std::string& relation) {
    return read(std::string(kStart) +
                ", trends: [{point: {workers: 8}, over: {workers: 1}, quantity: loss, " + relation +
                ", source: a}]}")
        .trends.at(0);
  };
  CHECK(trend("relation: more_than").relation == LearningTrend::Relation::more_than);
  CHECK(trend("relation: equal, within: 0.1").within == 0.1);
  CHECK(trend("relation: at_most, within: 0.1").within == 0.1);
  CHECK(trend("relation: at_most, within: 0.1").relation == LearningTrend::Relation::at_most);
  CHECK_THROWS_WITH(
      trend("relation: equal"),
      Catch::EndsWith(
          "learning.trends[0].within: missing (expected largest difference, a share of the quantity)"));
  CHECK_THROWS_WITH(trend("relation: less_than, within: 0.1"),
                    Catch::EndsWith("learning.trends[0].within: only valid with relation: equal or at_most"));
}

TEST_CASE("a trend about the target needs a target", "[scenarios][errors]") {
  CHECK_THROWS_WITH(read(std::string(kStart) +
                         ", trends: [{point: {workers: 8}, over: {workers: 1}, quantity: samples_to_target, "
                         "relation: less_than, source: a}]}"),
                    Catch::EndsWith("learning.trends[0]: samples_to_target needs learning.target_loss"));
}

TEST_CASE("learning has five optimizers", "[scenarios]") {
  const auto optimizer = [](const std::string& keys) {
    return read(std::string(kStart) + ", " + keys + "}").optimizer;
  };
  CHECK(optimizer("optimizer: sgd").momentum == 0);
  CHECK(optimizer("optimizer: momentum, momentum: 0.5").momentum == 0.5);
  CHECK(optimizer("optimizer: adagrad").kind == Optimizer::Kind::adagrad);
  CHECK(optimizer("optimizer: rmsprop, epsilon: 0.001").kind == Optimizer::Kind::rmsprop);
  CHECK(optimizer("optimizer: rmsprop").decay == 0.9);
  CHECK(optimizer("optimizer: adam").kind == Optimizer::Kind::adam);
  CHECK(optimizer("optimizer: adam, decay: 0.99").decay == 0.99);
}

TEST_CASE("learning reads files of data", "[scenarios]") {
  const LearningOptions idx = read(
      "{mini_batches: 10, learning_rate: 0.1, data: {kind: idx, train: a, train_labels: b, test: c, "
      "test_labels: d}}");
  CHECK(idx.data.train == std::vector<std::string>{"a"});
  CHECK(idx.data.test_labels == std::vector<std::string>{"d"});
  const LearningOptions cifar = read(
      "{mini_batches: 10, learning_rate: 0.1, data: {kind: cifar10, train: [a, b], test: c, test_samples: "
      "7}}");
  CHECK(cifar.data.train == std::vector<std::string>{"a", "b"});
  CHECK(cifar.data.test_samples == 7);
}

TEST_CASE("contradictory learning options are refused with the key", "[scenarios][errors]") {
  struct Case {
    const char *text, *message;
  };
  const auto one = GENERATE(values<Case>({
      {"{learning_rate: 0.1, data: {kind: images}}",
       "s.yaml:1:1: learning.mini_batches: missing (expected mini-batches of a worker, an integer >= 1)"},
      {"{mini_batches: 10, data: {kind: images}}",
       "s.yaml:1:1: learning.learning_rate: missing (expected a number > 0)"},
      {"{mini_batches: 10, learning_rate: 0.1, data: {kind: image}}",
       "s.yaml:1:53: learning.data.kind: expected one of images, mesh, sequences, showers, idx, cifar10, "
       "raw, got "
       "\"image\"; did you mean \"images\"?"},
      {"{mini_batches: 10, learning_rate: 0.1, data: {kind: images}, optimizer: sgd, momentum: 0.5}",
       "s.yaml:1:88: learning.momentum: only valid with optimizer: momentum and adam"},
      {"{mini_batches: 10, learning_rate: 0.1, data: {kind: images}, warm_up: 5}",
       "s.yaml:1:71: learning.warm_up: only valid with linear_scaling: true"},
      {"{mini_batches: 10, learning_rate: 0.1, data: {kind: images}, start: a, warm_start: 5}",
       "s.yaml:1:84: learning.warm_start: not valid with start"},
      {"{mini_batches: 10, learning_rate: 0.1, data: {kind: images}, trends: [{point: {workers: 1}, over: "
       "{workers: 2}, quantity: los, relation: less_than, source: a}]}",
       "s.yaml:1:123: learning.trends[0].quantity: expected one of loss, accuracy, loss_low_energy, seconds, "
       "seconds_to_target, "
       "samples_to_target, got \"los\"; did you mean \"loss\"?"},
      {"{mini_batches: 10, learning_rate: 0.1, data: {kind: raw, train: [], test: a}}",
       "s.yaml:1:65: learning.data.train: expected a list of files that is not empty, got a list"},
      {"{mini_batches: 10, learning_rate: 0.1, data: {kind: images, train: a}}",
       "s.yaml:1:61: learning.data.train: unknown key (expected one of: kind, samples, test_samples, noise, "
       "seed)"},
  }));
  CHECK_THROWS_WITH(read(one.text), one.message);
}

}  // namespace stepcast
