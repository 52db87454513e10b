#include <catch2/catch.hpp>
#include <numeric>

#include "strategies/data_parallel/synchronous.hpp"
#include "tests/sim/small_cluster.hpp"

using namespace stepcast;

namespace {

const std::vector<LayerGradients> kLayers{{10, 2}, {}, {30}, {5, 5}, {}};
const std::vector<LayerGradients> kPairs{{3, 1}, {3, 1}, {3, 1}, {3, 1}, {3, 1}};
/// Ready after 1, 3, 6, 10 and 15 ms, from the last layer to the first.
const std::vector<LayerSeconds> kTimes{
    {0, 0.005, 0}, {0, 0.004, 0}, {0, 0.003, 0}, {0, 0.002, 0}, {0, 0.001, 0}};

std::vector<Bucket> with_period(double period, double threshold, double negotiation = 0, double lead = 0) {
  return buckets_of_cycles(kLayers, kTimes, {1}, {{period}, {{threshold}}, {negotiation}, {lead}});
}

std::vector<int> first_devices(int count) {
  std::vector<int> endpoints(count);
  std::iota(endpoints.begin(), endpoints.end(), 0);
  return endpoints;
}

double total(const std::vector<Bucket>& buckets) {
  double bytes = 0;
  for (const Bucket& bucket : buckets) {
    CHECK(static_cast<double>(bucket.elements.size()) == bucket.gradient.value);
    bytes += bucket.gradient.value;
  }
  return bytes;
}

}  // namespace

TEST_CASE("gradients that are ready at one look travel together, and wait for it", "[strategies]") {
  const auto buckets = with_period(0.004, 1000);  // looks at 4, 8, 12 and 16 ms; ready at 3, 6 and 15
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].gradient.value == 10);
  CHECK(buckets[0].wait.value == Approx(0.001));
  CHECK(buckets[1].gradient.value == 30);
  CHECK(buckets[1].wait.value == Approx(0.002));
  CHECK(buckets[2].gradient.value == 12);
  CHECK(buckets[2].wait.value == Approx(0.001));
  CHECK(with_period(0.007, 1000).size() == 2);  // looks at 7 and 21 ms
}

TEST_CASE("agreement and looks pass beside the data of gradients that are announced early", "[strategies]") {
  for (const Bucket& bucket : with_period(0.004, 12, 0.002, 1)) CHECK(bucket.wait.value == 0);
  CHECK(with_period(0.004, 1000, 0.002, 1).size() == 1);
  CHECK(with_period(0.004, 1000, 0.002, 0)[0].wait.value == Approx(0.003));  // look after 1 ms, then 2 ms
  CHECK(with_period(0.004, 1000, 0.020, 1)[0].wait.value == Approx(0.005));  // agreed at 20 ms, ready at 15
}

TEST_CASE("every gradient is in one bucket, whatever the period and the threshold", "[strategies]") {
  for (const double period : {1e-4, 0.003, 0.007, 1.0}) {
    for (const double threshold : {1.0, 7.0, 12.0, 35.0, 1000.0}) {
      CAPTURE(period, threshold);
      const auto buckets = with_period(period, threshold);
      CHECK(total(buckets) == 52);
      for (const Bucket& bucket : buckets) {
        CHECK(bucket.wait.value >= 0);
        CHECK(bucket.wait.value < period);
      }
    }
  }
}

TEST_CASE("a buffer of one look holds no more than the threshold, except one larger array", "[strategies]") {
  for (const Bucket& bucket : with_period(1, 12))
    CHECK((bucket.gradient.value <= 12 || bucket.gradient.value == 30));
  CHECK(with_period(1, 1000).size() == 1);
}

TEST_CASE("a negotiation takes a number of trees of small messages over the servers", "[strategies]") {
  const Platform platform = switch_platform(16);  // 1 us from device to device, no overhead
  const double hop =
      Topology(platform).route_latency(platform.host_endpoint(0), platform.host_endpoint(15)).value;
  CHECK(negotiation_seconds(platform, first_devices(1), 4).value == 0);
  CHECK(negotiation_seconds(platform, first_devices(2), 4).value == Approx(4 * hop));
  CHECK(negotiation_seconds(platform, first_devices(16), 4).value == Approx(4 * 4 * hop));
  CHECK(negotiation_seconds(platform, first_devices(9), 1).value == Approx(4 * hop));
}

TEST_CASE("layers of several arrays share buffers up to the threshold", "[strategies]") {
  CHECK(buckets_of_cycles(kPairs, kTimes, {1}, {{1}, {{100}}, {}, {}}).size() == 1);
  CHECK(buckets_of_cycles(kPairs, kTimes, {1}, {{1}, {{8}}, {}, {}}).size() == 3);  // 8, 8 and 4
}
