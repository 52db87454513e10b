#include "models/cost/matrix_product.hpp"

#include <catch2/catch.hpp>

#include "models/cost/cost.hpp"
#include "models/cost/device.hpp"
#include "models/cost/pass_cost.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

constexpr Seconds kTile{1e-6};

/// 100 multiprocessors of 1 Tflop/s each. Its memory is so slow that no product is worth dividing.
Device device_of_hundred() {
  Device device;
  device.peak = {100e12};
  device.memory_bandwidth = {1};
  device.multiprocessors = 100;
  device.kernels = KernelShares{};
  return device;
}

double seconds(const MatrixProduct& product, std::int64_t batch = 1) {
  return product_time(product, batch, device_of_hundred(), 0.8, kTile).value;
}

/// A wave of tiles of 256 x 128.
double wave(double inner) {
  const double share = 0.8 / (1 + 8. / 256 + 8. / 128);
  return 2 * 256 * 128 * inner / (share * 1e12) + kTile.value;
}

}  // namespace

TEST_CASE("a product of as many tiles as multiprocessors takes one wave, and one tile more a second one",
          "[models]") {
  CHECK(seconds({100 * 256, 128, 4096}) == Approx(wave(4096)));
  CHECK(seconds({99 * 256 + 1, 128, 4096}) == Approx(wave(4096)));
  const double one_more = seconds({100 * 256 + 1, 128, 4096});
  CHECK(one_more > wave(4096));
  CHECK(one_more <= Approx(2 * wave(4096)));
  CHECK(seconds({200 * 256, 128, 4096}) == Approx(2 * wave(4096)));
}

TEST_CASE("samples make the rows, the inner dimension or the number of products larger", "[models]") {
  using Samples = MatrixProduct::Samples;
  CHECK(seconds({256, 128, 4096}, 100) == Approx(wave(4096)));
  CHECK(seconds({100 * 256, 128, 512, Samples::inner}, 8) == Approx(wave(4096)));
  CHECK(seconds({256, 128, 4096, Samples::products}, 200) == Approx(2 * wave(4096)));
  CHECK(seconds({256, 128, 4096, Samples::products, 2}, 50) == Approx(wave(4096)));
  CHECK(seconds({.rows = 25600, .columns = 128, .inner = 4096, .in_turn = 3}) == Approx(3 * wave(4096)));
}

TEST_CASE("a product takes longer with a larger inner dimension, and is never faster than the peak",
          "[models]") {
  Device device = device_of_hundred();
  device.memory_bandwidth = {1e12};
  for (const double rows : {32, 100, 1000, 4096, 25600}) {
    for (const double columns : {16, 768, 3072}) {
      double before = 0;
      for (const double inner : {16, 64, 300, 1024, 1500, 9000, 70000}) {
        CAPTURE(rows, columns, inner);
        const MatrixProduct product{rows, columns, inner};
        const double time = product_time(product, 1, device, 1, kTile).value;
        CHECK(time > before);
        CHECK(time > product.flops().value / device.peak.value);
        before = time;
      }
    }
  }
}

TEST_CASE("a product of few tiles divides its inner dimension among the multiprocessors", "[models]") {
  Device device = device_of_hundred();
  const MatrixProduct small{256, 128, 1e6};
  const double whole = product_time(small, 1, device, 0.8, kTile).value;
  device.memory_bandwidth = {1e12};
  CHECK(product_time(small, 1, device, 0.8, kTile).value < whole / 2);  // by 3: the whole one has 32 tiles
}

TEST_CASE("without a number of multiprocessors a product runs at its share of the peak", "[models]") {
  Device device = device_of_hundred();
  device.multiprocessors = 0;
  CHECK(product_time({10, 10, 10}, 3, device, 0.5, kTile).value == Approx(3 * 2000 / 50e12));
}

TEST_CASE("all passes of products have the work of the forward pass", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [8, 9, 9], layers: [{name: b, kind: convolution, filters: 8, kernel: 1}, "
      "{name: a, kind: convolution, filters: 12, groups: 4, kernel: 3, stride: 2}, "
      "{name: r, kind: reshape, shape: [16, 12]}, {name: d, kind: dense, units: 5}, {name: l, kind: "
      "mean_squared_error}]}");
  for (const LayerCost& cost : layer_costs(model)) {
    for (const PassCost* pass : {&cost.backward_data, &cost.backward_weights}) {
      if (!pass->products.empty()) CHECK(pass->flops.value == Approx(cost.forward.flops.value));
    }
  }
  CHECK(layer_costs(model)[1].forward.flops.value == 2 * (12 * 4 * 4) * (2 * 9));
}
