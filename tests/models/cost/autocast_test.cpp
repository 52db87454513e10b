#include <catch2/catch.hpp>

#include "core/yaml.hpp"
#include "models/cost/device.hpp"
#include "models/cost/pass_cost.hpp"
#include "models/cost/roofline.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

KernelChoice autocast_choice() {
  KernelChoice choice;
  choice.precision = KernelChoice::Precision::bf16;
  choice.autocast = true;
  return choice;
}

/// A layer norm (fp32) behind a dense layer (2 bytes), then a dense layer with a shortcut around it. 32
/// elements.
Model block() {
  return model_of(
      "{name: m, source: s, input: [8, 4], layers: [{name: below, kind: dense, units: 4}, "
      "{name: norm, kind: layer_norm}, {name: product, kind: dense, units: 4}, "
      "{name: sum, kind: add, inputs: [product, norm]}, {name: loss, kind: softmax_cross_entropy}]}");
}

/// Shares of 1 and no gaps; 1 Gflop/s and 1 GB/s; casts to fp32 at half the bandwidth.
Device autocast_device() {
  Device device;
  device.name = "unit";
  device.peak = {1e9};
  device.memory_bandwidth = {1e9};
  device.kernels = KernelShares{};
  device.kernels->cast = 0.5;
  device.kernels->choice = autocast_choice();
  return device;
}

}  // namespace

TEST_CASE("a scale multiplies with fp32 parameters, so its output is fp32 under autocast", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [4, 8], layers: [{name: a, kind: dense, units: 8}, {name: s, kind: scale},"
      "{name: l, kind: mean_squared_error}]}");
  CHECK(autocast_widths(model) == std::vector<double>{2, 4, 4});
}

TEST_CASE("autocast keeps norms and what they reach in fp32, and products in half precision", "[models]") {
  CHECK(autocast_widths(block()) == std::vector<double>{2, 4, 2, 4, 4});
  const Model gelu = model_of(
      "{name: m, source: s, input: [8, 4], layers: [{name: below, kind: dense, units: 4}, {name: gelu, kind: "
      "gelu}, {name: loss, kind: mean_squared_error}]}");
  CHECK(autocast_widths(gelu)[1] == 2);
  CHECK(autocast_widths(gelu, KernelChoice::Gelu::eager)[1] == 4);
}

TEST_CASE("a cast of autocast moves six bytes an element", "[models]") {
  const std::vector<LayerCost> costs = layer_costs(block(), autocast_choice());
  const LayerCost &norm = costs[1], &product = costs[2], &sum = costs[3];
  CHECK(norm.forward.widened == 6 * 32);
  CHECK(norm.backward_data.narrowed == 6 * 32);
  CHECK(norm.forward.width == 4);
  CHECK(product.forward.narrowed == 6 * 32);
  CHECK(product.backward_data.widened == 6 * 32);
  CHECK(product.forward.narrowed_weights == 6 * (16 + 4));
  CHECK(product.backward_weights.widened_weights == 6 * (16 + 4));
  CHECK(product.forward.kernels == 1 + 1 + 2);  // the product, its input, weight and bias
  CHECK(sum.forward.widened == (2 + 4 + 4) * 32);
  CHECK(sum.backward_data.narrowed == 6 * 32);
  CHECK(costs[0].forward.narrowed == 6 * 32);  // the input of the network is fp32
}

TEST_CASE("the time of autocast's casts is their bytes over their share of the bandwidth", "[models]") {
  const Device device = autocast_device();
  const Model model = block();
  const auto seconds = [&](const LayerCost& cost) {
    return roofline_time(model.layers[1], cost.forward, 1, device, 1).value;
  };
  const LayerCost norm = layer_costs(model, device.choice())[1];
  // Reads and writes 32 elements of 4 bytes, and scale and shift of 4 elements each.
  CHECK(seconds(norm) == Approx((2 * 32 * 4 + 8 * 4 + 6 * 32 / 0.5) / 1e9));
}

TEST_CASE("with autocast the optimizer does not write weights of half precision", "[models]") {
  KernelChoice choice = autocast_choice();
  CHECK(update_arrays(choice) == 8);
  choice.autocast = false;
  CHECK(update_arrays(choice) == 8.5);
}

TEST_CASE("autocast costs time in each network of transformers, and little in ResNet-50", "[models]") {
  const auto ratio = [](const std::string& network) {
    const Model model = shipped_model(network);
    KernelChoice choice = autocast_choice();
    const auto step = [&] {
      const Device device =
          with_kernels(load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "h200"), choice);
      return roofline_step(model, 16, device, 1).value;
    };
    const double with = step();
    choice.autocast = false;
    return with / step();
  };
  CHECK(ratio("resnet50") == Approx(1).margin(0.1));
  CHECK(ratio("bert-base") > 1.2);
  CHECK(ratio("vit-b16") > 1.2);
}
