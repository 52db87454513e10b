#include "data/dataset.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "data/train_and_test.hpp"

namespace stepcast {

namespace {

/// A data set whose sample i is the number i.
class Numbers : public Dataset {
 public:
  explicit Numbers(std::int64_t count) : count_(count) {}
  std::int64_t samples() const override { return count_; }
  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    input[0] = sample;
    targets[0] = -sample;
  }

 private:
  std::int64_t count_;
};

const SampleForm kForm{{1}, {1}, 0};

}  // namespace

TEST_CASE("several workers together take the samples of one worker with the whole batch", "[data]") {
  const std::int64_t samples = GENERATE(24, 30, 31);
  const Numbers data(samples);
  Batches alone(data, kForm, {.worker = 0, .workers = 1, .batch = 12});
  std::vector<Batches> three;
  for (int worker = 0; worker < 3; ++worker)
    three.emplace_back(data, kForm, Batches::Split{.worker = worker, .workers = 3, .batch = 4});
  for (int step = 0; step < 7; ++step) {
    std::vector<float> inputs, targets;
    for (Batches& worker : three) {
      const Batches::Batch& batch = worker.next();
      inputs.insert(inputs.end(), batch.inputs.begin(), batch.inputs.end());
      targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
    }
    const Batches::Batch& whole = alone.next();
    CHECK(inputs == whole.inputs);
    CHECK(targets == whole.targets);
    CHECK(inputs[0] == step * 12 % samples);
  }
}

TEST_CASE("restart begins with the first mini-batch again", "[data]") {
  const Numbers data(10);
  Batches batches(data, kForm, {.batch = 5});
  int beats = 0;
  batches.prepare(3, [&beats] { ++beats; });
  CHECK(beats == 3);
  batches.next();
  batches.restart();
  CHECK(batches.next().inputs == std::vector<float>{0, 1, 2, 3, 4});
}

namespace {

struct Case {
  DataOptions::Kind kind;
  SampleForm form;
};

std::vector<Case> cases() {
  using Kind = DataOptions::Kind;
  return {{Kind::images, {{1, 12, 10}, {1}, 4}},
          {Kind::mesh, {{2, 16, 16}, {1, 4, 4}, 2}},
          {Kind::sequences, {{20, 3}, {1}, 3}},
          {Kind::showers, {{1, 8, 6, 6}, {1}, 2}}};
}

struct Sample {
  std::vector<float> input, targets;

  friend bool operator==(const Sample&, const Sample&) = default;
};

Sample sample_of(const Dataset& data, const SampleForm& form, std::int64_t number) {
  Sample sample{std::vector<float>(sample_numbers(form.input)),
                std::vector<float>(sample_numbers(form.targets))};
  data.read(number, sample.input, sample.targets);
  return sample;
}

}  // namespace

TEST_CASE("a generated sample is always the same, and no two samples are equal", "[data]") {
  for (const Case& one : cases()) {
    CAPTURE(ordinal(one.kind));
    DataOptions options;
    options.kind = one.kind;
    options.samples = 6;
    options.test_samples = 3;
    const TrainAndTest data = make_data(options, one.form), again = make_data(options, one.form);
    CHECK(data.train->samples() == 6);
    CHECK(data.test->samples() == 3);
    std::vector<Sample> all;
    for (int i = 0; i < 6; ++i) all.push_back(sample_of(*data.train, one.form, i));
    for (int i = 0; i < 3; ++i) all.push_back(sample_of(*data.test, one.form, i));
    CHECK(sample_of(*again.train, one.form, 4) == all[4]);
    CHECK(sample_of(*data.train, one.form, 0) == all[0]);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) CHECK(all[i].input != all[k].input);
    }
    options.seed = 2;
    CHECK(!(sample_of(*make_data(options, one.form).train, one.form, 4) == all[4]));
  }
}

TEST_CASE("generated labels are classes of about equal frequency", "[data]") {
  for (const Case& one : cases()) {
    CAPTURE(ordinal(one.kind));
    DataOptions options;
    options.kind = one.kind;
    options.samples = 600;
    const auto data = make_data(options, one.form).train;
    std::map<float, int> count;
    int all = 0;
    for (int i = 0; i < 600; ++i) {
      for (const float label : sample_of(*data, one.form, i).targets) {
        ++count[label];
        ++all;
      }
    }
    CHECK(std::ssize(count) == one.form.classes);
    for (const auto& [label, times] : count) {
      CAPTURE(label);
      CHECK(label >= 0);
      CHECK(label < static_cast<float>(one.form.classes));
      CHECK(times > 0.6 * all / static_cast<double>(one.form.classes));
    }
  }
}

TEST_CASE("a task that does not fit the network is refused with the networks that it needs", "[data]") {
  DataOptions options;
  CHECK_THROWS_WITH(
      make_data(options, {{5}, {1}, 3}),
      "data: images needs a network with an input of [channels, height, width] and one class a sample");
  options.kind = DataOptions::Kind::showers;
  CHECK_THROWS_WITH(
      make_data(options, {{1, 4, 4}, {1}, 2}),
      "data: showers needs a network with an input of [channels, depth, height, width] and yes or no "
      "for each sample");
}

}  // namespace stepcast
