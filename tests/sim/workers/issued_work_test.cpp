#include "sim/workers/issued_work.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace stepcast::issued_work_test {

namespace {

struct Layer {
  double device = 0, host = 0;
  int kernels = 1;
};

struct Clocks {
  double device = 0, host = 0;
};

/// The kernels of the layers one by one. @returns the longest kernel or issue [s]
double naive(const std::vector<Layer>& layers, Clocks& clocks) {
  double longest = 0;
  for (const Layer& layer : layers) {
    for (int i = 0; i < layer.kernels; ++i) {
      clocks.host += layer.host / layer.kernels;
      clocks.device = std::max(clocks.device, clocks.host) + layer.device / layer.kernels;
    }
    longest = std::max(longest, std::min(layer.device, layer.host) / layer.kernels);
  }
  return longest;
}

IssuedWork composed(const std::vector<Layer>& layers) {
  IssuedWork all;
  for (const Layer& layer : layers) all = then(all, issued_layer(layer.device, layer.host));
  return all;
}

Clocks after(const Clocks& before, const IssuedWork& work) {
  return {std::max(before.device + work.device, before.host + work.lag), before.host + work.host};
}

constexpr unsigned kSeed = 20261129;

}  // namespace

TEST_CASE("composed work ends as its kernels one by one, but for the last kernel", "[sim]") {
  std::mt19937 generator(kSeed);
  std::uniform_real_distribution<double> time(0, 1);
  std::uniform_int_distribution<int> number(1, 12);
  for (int drawn = 0; drawn < 1000; ++drawn) {
    std::vector<Layer> layers(number(generator));
    for (Layer& layer : layers)
      layer = {time(generator), time(generator) * (drawn % 3), 10 * number(generator)};
    const Clocks start{time(generator), 3 * time(generator)};
    Clocks one_by_one = start;
    const double longest = naive(layers, one_by_one);
    const Clocks end = after(start, composed(layers));
    constexpr double kRounding = 1e-12;  // sums of up to 1,440 kernels
    INFO("case " << drawn << " of seed " << kSeed);
    CHECK(end.host == Approx(one_by_one.host).epsilon(kRounding));
    CHECK(end.device <= one_by_one.device + kRounding);
    CHECK(end.device >= one_by_one.device - longest - kRounding);
  }
}

TEST_CASE("composition is associative", "[sim]") {
  const IssuedWork a = issued_layer(3, 1), b = issued_layer(0, 5), c = issued_layer(2, 2);
  const IssuedWork left = then(then(a, b), c), right = then(a, then(b, c));
  CHECK(left.device == right.device);
  CHECK(left.host == right.host);
  CHECK(left.lag == right.lag);
  CHECK(left.lag == 8);  // all is issued after 1 + 5 + 2
}

}  // namespace stepcast::issued_work_test
