#include "models/cost/cost.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/cost/device.hpp"
#include "models/cost/matrix_product.hpp"
#include "models/cost/pass_cost.hpp"
#include "models/cost/roofline.hpp"
#include "models/loader.hpp"
#include "models/network/model.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

/// The layer between two dense layers, so that it has a layer with parameters below it.
LayerCost cost_inside(const std::string& input, const std::string& layer) {
  const Model model = model_of("{name: m, source: s, input: " + input +
                               ", layers: [{name: below, kind: batch_norm}, {name: a, " + layer +
                               "}, {name: loss, kind: mean_squared_error}]}");
  return layer_costs(model).at(1);
}

}  // namespace

TEST_CASE("a convolution does as many multiply-adds backward to data and to weights as forward", "[models]") {
  const LayerCost cost = cost_inside("[5, 9, 8]", "kind: convolution, filters: 7, kernel: 3, pad: 1");
  const double flops = 2.0 * 7 * 9 * 8 * 5 * 9;
  CHECK(cost.forward.flops.value == flops);
  CHECK(cost.backward_data.flops.value == flops);
  CHECK(cost.backward_weights.flops.value == flops);
}

TEST_CASE("traffic counts inputs and outputs per sample, and parameters per step", "[models]") {
  const LayerCost cost = cost_inside("[20]", "kind: dense, units: 3");
  CHECK(cost.forward.bytes(10, {4}).value == 4 * (10 * (20 + 3) + 63));
  CHECK(cost.update.bytes(10, {4}).value == 4 * 5 * 63);
  CHECK(cost.update.kernels == 2);
}

TEST_CASE("an LSTM multiplies four gates by inputs and states at every step", "[models]") {
  const LayerCost cost = cost_inside("[11, 20]", "kind: lstm, hidden: 6, bidirectional: true");
  const double flops = 2.0 * 11 * 2 * 4 * 6 * (20 + 6);
  CHECK(cost.forward.flops.value == flops);
  CHECK(cost.backward_data.flops.value == 2 * flops);
  CHECK(cost.backward_weights.kernels == 0);
  CHECK(cost.forward.kernels == 12);
}

TEST_CASE("attention does four products of time squared and width backward, two forward", "[models]") {
  const LayerCost cost = cost_inside("[11, 24]", "kind: attention, heads: 4");
  CHECK(cost.forward.flops.value == 4.0 * 11 * 11 * 8);
  CHECK(cost.backward_data.flops.value == 8.0 * 11 * 11 * 8);
}

TEST_CASE("layers without parameters below them have no backward-data pass", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [4, 6], layers: [{name: a, kind: relu},"
      "{name: b, kind: lstm, hidden: 3}, {name: c, kind: dense, units: 2},"
      "{name: d, kind: relu}, {name: loss, kind: mean_squared_error}]}");
  CHECK(backward_data_needed(model) == std::vector<bool>{false, false, true, true, true});
  const auto costs = layer_costs(model);
  CHECK(costs[0].backward_data.kernels == 0);
  CHECK(costs[1].backward_data.kernels == 0);
  // Even without the gradient of its input, the backward pass of an LSTM goes through time.
  CHECK(costs[1].backward_weights.flops.value == 2.0 * 4 * 4 * 3 * (6 + 2 * 3));
}

TEST_CASE("training work is three times forward work less backward-data of the first layer", "[models]") {
  const Model model = shipped_model("resnet50");
  const double first = layer_costs(model).front().forward.flops.value;
  CHECK(training_flops(model).value == 3 * forward_flops(model).value - first);
}

TEST_CASE("an output that two layers read has its two gradients summed", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [8], layers: [{name: a, kind: dense, units: 8},"
      "{name: b, kind: relu}, {name: c, kind: add, inputs: [a, b]},"
      "{name: loss, kind: mean_squared_error}]}");
  CHECK(consumers(model) == std::vector<int>{2, 1, 1, 0});
  CHECK(layer_costs(model)[0].backward_weights.activations == 8 + 8 + 3 * 8);
}

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

namespace {

const std::string kGood =
    "name: d\n"
    "peak: {value: 10.6 Tflop/s, source: s}\n"
    "memory_bandwidth: {value: 720 GB/s, source: s}\n"
    "memory: {value: 16 GiB, source: s}\n"
    "usable_memory: {value: 15 GiB, source: s}\n"
    "launch_overhead: {value: 5 us, source: s}\n"
    "rates:\n"
    "  - {model: resnet50, batch: 64, samples_per_second: 219, source: s}\n";

Device device_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "d.yaml");
  return read_device(YamlValue(node, ""));
}

}  // namespace

TEST_CASE("read_device gives SI units", "[models]") {
  const Device device = device_of(kGood);
  CHECK(device.peak.value == 10.6e12);
  CHECK(device.memory_bandwidth.value == 720e9);
  CHECK(device.memory.value == 16 * 0x1p30);
  CHECK(device.launch_overhead.value == Approx(5e-6).epsilon(1e-12));
  CHECK(device.rates.at(0).samples_per_second == 219);
  CHECK(device.rates.at(0).use == DeviceRate::Use::calibrate);
}

TEST_CASE("read_device refuses numbers without a source", "[models][errors]") {
  struct Case {
    std::string right, wrong, message;
  };
  const auto edit = GENERATE(values<Case>({
      {"{value: 10.6 Tflop/s, source: s}", "10.6 Tflop/s",
       "d.yaml:2:7: peak: expected a mapping with keys value, source, got \"10.6 Tflop/s\""},
      {"{value: 5 us, source: s}", "{value: 5 us}",
       "d.yaml:6:18: launch_overhead.source: missing (expected where the value comes from)"},
      {"15 GiB", "17 GiB", "d.yaml:5:16: usable_memory: more than the device's memory"},
      {"219", "0", "d.yaml:8:54: rates[0].samples_per_second: expected a number >= 1e-09, got \"0\""},
  }));
  std::string text = kGood;
  text.replace(text.find(edit.right), edit.right.size(), edit.wrong);
  CAPTURE(text);
  CHECK_THROWS_WITH(device_of(text), edit.message);
}

TEST_CASE("the usable memory of shipped devices is below the nominal one", "[models]") {
  for (const char* name : {"k20x", "k40", "k80", "p100-sxm2", "p100-pcie", "v100-sxm2-16gb", "a100-40gb",
                           "h100-sxm", "h200", "gh200", "cpu-core"}) {
    const Device device = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", name);
    CHECK(device.name == name);
    CHECK(device.usable_memory < device.memory);
  }
}

TEST_CASE("a device has the shares of the one that kernels_of names, and peaks of its own", "[models]") {
  const Device like = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "h100-sxm");
  const Device b200 = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "b200");
  CHECK(b200.kernels_of == "h100-sxm");
  CHECK(b200.kernels->streaming == like.kernels->streaming);
  using Precision = KernelChoice::Precision;
  CHECK(b200.precisions.at(Precision::f16).kernels.window ==
        like.precisions.at(Precision::f16).kernels.window);
  CHECK(b200.precisions.at(Precision::f16).peak.value == 2250e12);
  // What a precision names itself stays.
  const Device max = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "max-1550");
  CHECK(max.precisions.at(Precision::f16).kernels.dense == 0.63);
  CHECK(max.precisions.at(Precision::f16).kernels.flash == like.precisions.at(Precision::f16).kernels.flash);
}

TEST_CASE("kernels_of needs a device with kernels, and stands in their place", "[models][errors]") {
  const YamlNode with = parse_yaml(kGood + "kernels_of: {value: e, source: s}\n", "d.yaml");
  const YamlNode rated = parse_yaml(kGood, "e.yaml");
  CHECK_THROWS_WITH(with_kernels_of(with, rated),
                    "d.yaml:9:13: kernels_of: the device that it names has no key kernels");
  const YamlNode shares = parse_yaml("kernels: {}\n", "e.yaml");
  const YamlNode both = parse_yaml(kGood + "kernels_of: {value: e, source: s}\nkernels: {}\n", "d.yaml");
  CHECK_THROWS_WITH(with_kernels_of(both, shares),
                    "d.yaml:9:13: kernels_of: only valid without the key kernels");
}

TEST_CASE("every device from the V100 on computes transformers faster in half precision", "[models]") {
  const std::string models = std::string(STEPCAST_SOURCE_DIR) + "/models";
  const Model model = load_model(models, "gpt2-small");
  int checked = 0;
  for (const std::string& name : names_in(models + "/devices")) {
    const Device device = load_device(models, name);
    if (!device.kernels) continue;
    CAPTURE(name);
    using Precision = KernelChoice::Precision;
    KernelChoice half;
    half.precision = device.precisions.contains(Precision::f16) ? Precision::f16 : Precision::bf16;
    half.autocast = true;
    CHECK(roofline_step(model, 8, with_kernels(device, half), 1) < roofline_step(model, 8, device, 1));
    CHECK(device.precisions.at(half.precision).peak > device.peak);
    ++checked;
  }
  CHECK(checked >= 30);
}

TEST_CASE("bf16 alone needs a peak", "[models][errors]") {
  const std::string shares =
      "kernels: {gap: {value: 1 us, source: s}, streaming: {value: 1, source: s}, batch_norm: {value: 1, "
      "source: "
      "s}, layer_norm: {value: 1, source: s}, dense: {value: 1, source: s}, pointwise: {value: 1, source: "
      "s}, "
      "window: {value: 1, source: s}, winograd: {value: 1, source: s}, recurrent_step: {value: 1 us, source: "
      "s}}\n";
  const auto with = [&](const std::string& bf16) {
    return device_of(kGood + shares + "precisions: {bf16: " + bf16 + "}\n");
  };
  CHECK(with("{peak: {value: 4 Tflop/s, source: s}}").precisions.size() == 1);
  CHECK_THROWS_WITH(with("{}"), Catch::Contains("precisions.bf16.peak: missing"));
}

TEST_CASE("precisions need the shares of fp32", "[models][errors]") {
  CHECK_THROWS_WITH(device_of(kGood + "precisions: {f16: {peak: {value: 20 Tflop/s, source: s}}}\n"),
                    "d.yaml:9:13: precisions: needs the key kernels");
}
