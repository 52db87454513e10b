#include "strategies/plan/buckets.hpp"

#include <catch2/catch.hpp>

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
  for (const double size : {0.0, 1.0, 10.0, 11.0, 40.0, 1000.0}) {
    CAPTURE(size);
    check_cover(gradient_buckets(kLayers, {1}, {size}));
  }
}

TEST_CASE("size 0 gives each gradient array its own bucket", "[strategies]") {
  CHECK(gradient_buckets(kLayers, {1}, {0}).size() == 5);
}

TEST_CASE("a bucket closes at the layer that fills it", "[strategies]") {
  const auto buckets = gradient_buckets(kLayers, {1}, {11});
  REQUIRE(buckets.size() == 2);
  CHECK(buckets[0].gradient.value == 40);
  CHECK(buckets[0].layers.first == 2);
}
