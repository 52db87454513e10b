#include "strategies/plan/buckets.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>

using namespace stepcast;

namespace {

const std::vector<LayerGradients> kLayers{{10, 2}, {}, {30}, {5, 5}, {}};

void check_cover(const std::vector<Bucket>& buckets) {
  int last = 5;
  double bytes = 0;
  for (const Bucket& bucket : buckets) {
    if (bucket.layers.first < bucket.layers.last) {
      CHECK(bucket.layers.last == last);
      last = bucket.layers.first;
    }
    bytes += bucket.gradient.value;
  }
  CHECK(last == 0);
  std::int64_t begin = 52;  // buckets are filled from the end of the gradient array
  for (const Bucket& bucket : buckets) {
    if (bucket.layers.first < bucket.layers.last && bucket.elements.end == begin)
      begin = bucket.elements.begin;
    CHECK(static_cast<double>(bucket.elements.size()) == bucket.gradient.value);
  }
  CHECK(bytes == 52);
}

}  // namespace

TEST_CASE("buckets of any size hold every gradient once and cover every layer once, last first",
          "[strategies]") {
  for (const double size : {1.0, 10.0, 11.0, 40.0, 1000.0}) {
    CAPTURE(size);
    check_cover(gradient_buckets(kLayers, {1}, {{size}}));
  }
  check_cover(gradient_buckets(kLayers, {1}, kEachArray));
  check_cover(gradient_buckets(kLayers, {1}, kWholeModel));
}

TEST_CASE("a bucket holds one gradient array, or all, where asked to", "[strategies]") {
  CHECK(gradient_buckets(kLayers, {1}, kEachArray).size() == 5);
  CHECK(gradient_buckets(kLayers, {1}, kEachArray, Bytes{30}).size() == 5);
  CHECK(gradient_buckets(kLayers, {1}, kWholeModel).size() == 1);
  CHECK(gradient_buckets(kLayers, {1}, kWholeModel, Bytes{5}).size() == 2);
}

TEST_CASE("a bucket closes at the layer that fills it", "[strategies]") {
  const auto buckets = gradient_buckets(kLayers, {1}, {{11}});
  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0].gradient.value == 40);
  CHECK(buckets[0].layers.first == 2);
}

namespace {

/// Arrays of one bucket. Only those that sums of micro-batches need.
class BucketArrays : public Arrays {
 public:
  std::vector<float> gradients, update{9, 9};  // what an earlier step left

  std::span<float> of(Array array) override { return array == Array::gradients ? gradients : update; }
  std::span<float> of(Array array, const Slice&) override { return of(array); }
  void descend(Array, const Slice&, int) override {}
  CompressedGradient& compressed(const Codec&, const Slice&) override { throw std::logic_error("unused"); }
  double learning_rate() const override { return 0; }
};

}  // namespace

TEST_CASE("the last micro-batch leaves the sum of all in the gradients", "[plan]") {
  const int micro_batches = GENERATE(2, 3, 5);
  const Bucket bucket{{0, 1}, {0, 2}, {8}};
  BucketArrays arrays;
  double arrays_moved = 0;
  for (int i = 0; i < micro_batches; ++i) {
    arrays.gradients = {static_cast<float>(i + 1), -2};  // the backward pass overwrites them
    const LocalWork work = sum_micro_batch(bucket, place_of_micro_batch(i, micro_batches), {1});
    work.run(arrays);
    arrays_moved += work.duration.value;
  }
  const float n = micro_batches;
  CHECK(arrays.gradients == std::vector<float>{n * (n + 1) / 2, -2 * n});
  CHECK(arrays_moved == 2 + 3 * (micro_batches - 1));
}
