#include "data/dataset.hpp"

#include <catch2/catch.hpp>

namespace stepcast {
namespace {

/// A data set whose sample i is the number i.
class Numbers : public Dataset {
 public:
  explicit Numbers(std::int64_t count) : count_(count) {}
  std::int64_t samples() const override { return count_; }
  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    input[0] = static_cast<float>(sample);
    targets[0] = static_cast<float>(-sample);
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
    CHECK(inputs[0] == static_cast<float>(step * 12 % samples));
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

}  // namespace stepcast
