#include "models/cost/kernel_choice.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/yaml.hpp"
#include "models/cost/device.hpp"
#include "models/cost/pass_cost.hpp"
#include "models/cost/roofline.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

/// Shares of 1, no gaps; 1 Gflop/s (4 in half precision) and 1 GB/s.
Device half_device() {
  Device device;
  device.name = "unit";
  device.peak = {1e9};
  device.memory_bandwidth = {1e9};
  device.kernels = KernelShares{};
  PrecisionKernels half{{4e9}, KernelShares{}};
  half.kernels.flash = 1;
  device.precisions[KernelChoice::Precision::f16] = half;
  return device;
}

KernelChoice kernels_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "s.yaml");
  return read_kernel_choice(YamlValue(node, "kernels"));
}

Device device_with(const std::string& name, const KernelChoice& choice = {}) {
  return with_kernels(load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", name), choice);
}

/// Seconds of one pass of the second of three layers.
double second_layer(const std::string& layers, PassCost LayerCost::*pass, const Device& device) {
  const Model model =
      model_of("{name: m, source: s, input: [8, 4], layers: [{name: b, kind: dense, units: 4}, " + layers +
               ", {name: l, kind: mean_squared_error}]}");
  return roofline_time(model.layers[1], layer_costs(model, device.choice())[1].*pass, 1, device, 1).value;
}

}  // namespace

TEST_CASE("kernels are read by their words", "[models]") {
  CHECK(kernels_of("{}") == KernelChoice{});
  const KernelChoice choice =
      kernels_of("{precision: bf16, attention: flash, gelu: eager, optimizer: adam, update: for_loop}");
  CHECK(choice.precision == KernelChoice::Precision::bf16);
  CHECK(choice.attention == KernelChoice::Attention::flash);
  CHECK(choice.gelu == KernelChoice::Gelu::eager);
  CHECK(choice.optimizer == KernelChoice::UpdateRule::adam);
  CHECK(choice.update == KernelChoice::Update::for_loop);
  CHECK(to_string(choice) == "precision bf16, attention flash, gelu eager, optimizer adam, update for_loop");
  CHECK(to_flags(kernels_of("{precision: f16}")) == " --precision f16");
  CHECK(to_flags(kernels_of("{cross_entropy: fused}")) == " --cross-entropy fused");
  CHECK(to_flags(kernels_of("{precision: f16, autocast: true}")) == " --precision f16 --autocast");
  CHECK(to_string(kernels_of("{precision: f16, autocast: true}")) == "precision f16, autocast");
}

TEST_CASE("unknown kernels are refused", "[models][errors]") {
  CHECK_THROWS_WITH(
      kernels_of("{precision: f8}"),
      "s.yaml:1:13: kernels.precision: expected one of f32, tf32, f16, bf16, fp8, got \"f8\"; did "
      "you mean \"fp8\"?");
  CHECK_THROWS_AS(kernels_of("{softmax: fused}"), InputError);
}

TEST_CASE("a device is refused kernels that it does not have", "[models][errors]") {
  CHECK_THROWS_WITH(device_with("k80", kernels_of("{attention: flash}")),
                    "device k80: has no shares by kind of kernel, so its kernels cannot be chosen "
                    "(attention flash)");
  CHECK_THROWS_WITH(device_with("v100-sxm2-16gb", kernels_of("{precision: bf16}")),
                    "device v100-sxm2-16gb: precision: expected one of f32, f16, got \"bf16\"");
  CHECK_THROWS_WITH(
      device_with("v100-sxm2-16gb", kernels_of("{attention: flash}")),
      "device v100-sxm2-16gb: attention: flash: the device file gives no share of a flash kernel");
  CHECK_THROWS_WITH(device_with("h200", kernels_of("{precision: tf32, autocast: true}")),
                    "device h200: autocast: needs the precision f16 or bf16");
  CHECK_NOTHROW(device_with("k80"));
}

TEST_CASE("a precision has the shares of fp32 where it does not name its own", "[models]") {
  const Device plain = device_with("v100-sxm2-16gb"),
               half = device_with("v100-sxm2-16gb", kernels_of("{precision: f16}"));
  CHECK(half.peak.value == 125e12);
  CHECK(half.kernels->streaming == plain.kernels->streaming);
  CHECK(half.kernels->winograd == 1);
  CHECK(plain.kernels->winograd == 2.25);
}

TEST_CASE("lower precisions are never slower, and bf16 is as fast as f16 without shares of its own",
          "[models]") {
  const std::string network = GENERATE("resnet50", "gpt3-medium");
  CAPTURE(network);
  const Model model = shipped_model(network);
  for (const char* name : {"a100-40gb", "h100-sxm", "h200", "gh200"}) {
    CAPTURE(name);
    const auto step = [&](const std::string& text) {
      return roofline_step(model, 8, device_with(name, kernels_of(text)), 1).value;
    };
    CHECK(step("{precision: tf32}") < step("{}"));
    CHECK(step("{precision: f16}") < step("{precision: tf32}"));
    const bool own = std::string(name) == "h200" && network == "resnet50";
    CHECK((step("{precision: bf16}") == step("{precision: f16}")) != own);
  }
}

TEST_CASE("half precision moves 2 bytes an element, but its optimizer keeps 4", "[models]") {
  const Device plain = half_device(), half = with_kernels(plain, kernels_of("{precision: f16}"));
  CHECK(second_layer("{name: a, kind: relu}", &LayerCost::forward, plain) == Approx(4 * 64e-9));
  CHECK(second_layer("{name: a, kind: relu}", &LayerCost::forward, half) == Approx(2 * 64e-9));
  const std::string dense = "{name: a, kind: dense, units: 4, bias: false}";
  CHECK(second_layer(dense, &LayerCost::update, plain) == Approx(8 * 16 * 4e-9));
  CHECK(second_layer(dense, &LayerCost::update, half) == Approx(8.5 * 16 * 4e-9));
}

TEST_CASE("attention moves its scores as often as its kernels do", "[models]") {
  struct Case {
    std::string kernels, causal;
    double forward, backward;  // passes over the 2 x 8 x 8 scores
  };
  const auto given = GENERATE(values<Case>({{"eager", "false", 8, 11},
                                            {"eager", "true", 8, 11},
                                            {"fused_softmax", "false", 4, 7},
                                            {"fused_softmax", "true", 3.5, 6}}));
  CAPTURE(given.kernels, given.causal);
  const Device device = with_kernels(half_device(), kernels_of("{attention: " + given.kernels + "}"));
  // Queries, keys and values are 12 wide of which 4 come out.
  const Model model = model_of(
      "{name: m, source: s, input: [8, 4], layers: [{name: b, kind: dense, units: 12}, {name: a, kind: "
      "attention, "
      "heads: 2, causal: " +
      given.causal + "}, {name: l, kind: mean_squared_error}]}");
  const LayerCost cost = layer_costs(model, device.choice())[1];
  const double scores = 2 * 8 * 8, work = 4 * 8 * 8 * 4;
  CHECK(roofline_time(model.layers[1], cost.forward, 1, device, 1).value ==
        Approx((work + 4 * (8 * 12 + 8 * 4 + given.forward * scores)) * 1e-9));
  CHECK(roofline_time(model.layers[1], cost.backward_data, 1, device, 1).value ==
        Approx((2 * work + 4 * (2 * (8 * 12 + 8 * 4) + given.backward * scores)) * 1e-9));
}

TEST_CASE("a flash kernel moves no scores, and computes half of them below a causal mask", "[models]") {
  const std::string text =
      "{name: m, source: s, input: [512, 4], layers: [{name: b, kind: dense, units: 12}, {name: a, kind: "
      "attention, heads: 2, causal: true}, {name: l, kind: mean_squared_error}]}";
  const Model model = model_of(text);
  const Device device = with_kernels(half_device(), kernels_of("{precision: f16, attention: flash}"));
  const LayerCost cost = layer_costs(model, device.choice())[1];
  const double work = 4 * 512.0 * 512 * 4;
  CHECK(roofline_time(model.layers[1], cost.forward, 1, device, 1).value == Approx(0.5 * work / 4e9));
  CHECK(roofline_time(model.layers[1], cost.backward_data, 1, device, 1).value == Approx(1.25 * work / 4e9));
  const Device first = with_kernels(half_device(), kernels_of("{precision: f16, attention: flash_1}"));
  CHECK(layer_costs(model, first.choice())[1].forward.bytes(1, Bytes{2}).value ==
        cost.forward.bytes(1, Bytes{2}).value);
  CHECK(roofline_time(model.layers[1], cost.forward, 1, first, 1).value ==
        Approx(0.5 * work / (0.53 * 4e9)));  // T. Dao, arXiv:2307.08691
}

TEST_CASE("GELU written out moves its elements as often as its operators do", "[models]") {
  const Device device = with_kernels(half_device(), kernels_of("{gelu: eager}"));
  CHECK(second_layer("{name: a, kind: gelu}", &LayerCost::forward, device) == Approx(18 * 32 * 4e-9));
  CHECK(second_layer("{name: a, kind: gelu}", &LayerCost::backward_data, device) == Approx(28 * 32 * 4e-9));
  const Device exact = with_kernels(half_device(), kernels_of("{gelu: eager_erf}"));
  CHECK(second_layer("{name: a, kind: gelu}", &LayerCost::forward, exact) == Approx(11 * 32 * 4e-9));
  CHECK(second_layer("{name: a, kind: gelu}", &LayerCost::backward_data, exact) == Approx(24 * 32 * 4e-9));
}

TEST_CASE("optimizers pass over their parameters as often as their kernels do", "[models]") {
  struct Case {
    std::string kernels;
    double passes;
    int launches;
  };
  const auto given = GENERATE(values<Case>({{"{optimizer: sgd}", 3, 1},
                                            {"{optimizer: sgd, update: fused}", 3, 1},
                                            {"{}", 8, 1},
                                            {"{update: for_loop}", 8, 3},
                                            {"{update: fused}", 5, 1},
                                            {"{optimizer: adam}", 18, 1},
                                            {"{optimizer: adam, update: for_loop}", 18, 7},
                                            {"{optimizer: adam, update: fused}", 7, 1},
                                            {"{optimizer: adamw}", 20, 1},
                                            {"{optimizer: adamw, update: for_loop}", 20, 8},
                                            {"{optimizer: adamw, update: fused}", 7, 1}}));
  CAPTURE(given.kernels);
  Device device = half_device();
  device.kernels->gap = {1};
  device = with_kernels(device, kernels_of(given.kernels));
  CHECK(second_layer("{name: a, kind: dense, units: 4, bias: false}", &LayerCost::update, device) ==
        Approx(given.launches + given.passes * 16 * 4e-9).epsilon(1e-12));
}

TEST_CASE("the gradient of a bias is summed by a kernel of its own", "[models]") {
  const Device device = half_device();
  const auto backward = [&](const std::string& bias) {
    return second_layer("{name: a, kind: dense, units: 4, bias: " + bias + "}", &LayerCost::backward_weights,
                        device);
  };
  CHECK(backward("true") - backward("false") >= Approx(32 * 4e-9));
}

TEST_CASE("cross entropy moves bytes of each logit by its operators", "[models]") {
  const auto bytes = [](const char* kind, PassCost LayerCost::*pass) {
    const Device device =
        with_kernels(half_device(), kernels_of(std::string("{precision: f16, cross_entropy: ") + kind + "}"));
    const Model model = model_of(
        "{name: m, source: s, input: [8, 4], layers: [{name: v, kind: dense, units: 16}, {name: l, kind: "
        "softmax_cross_entropy}]}");
    const PassCost cost = layer_costs(model, device.choice()).back().*pass;
    return roofline_time(model.layers.back(), cost, 1, device, 1).value * 1e9 / (8 * 16);
  };
  CHECK(bytes("log_softmax", &LayerCost::forward) == Approx(4));
  CHECK(bytes("vocab_parallel", &LayerCost::forward) == Approx(38));
  CHECK(bytes("vocab_parallel", &LayerCost::backward_data) == Approx(14));
  CHECK(bytes("fused", &LayerCost::forward) == Approx(6));
  CHECK(bytes("fused", &LayerCost::backward_data) == Approx(4));
}

TEST_CASE("each expert has a product of its own, and its rows move in turn with it", "[models]") {
  const std::string layer = "{name: e, kind: experts, experts: 4, top: 2, hidden: 8}";
  const Model model =
      model_of("{name: m, source: s, input: [8, 4], layers: [{name: b, kind: dense, units: 4}, " + layer +
               ", {name: l, kind: mean_squared_error}]}");
  const LayerCost cost = layer_costs(model)[1];
  for (const PassCost* pass : {&cost.forward, &cost.backward_data, &cost.backward_weights}) {
    REQUIRE(pass->products.size() == 3);
    Flops sum;
    for (const MatrixProduct& product : pass->products) sum += product.flops();
    CHECK(sum == pass->flops);
    CHECK(pass->products.front().together == 4);
    CHECK(pass->products.back().together == 1);  // the router
  }
  CHECK(cost.forward.products.front().rows == 8 * 2 / 4);
  const Device device = with_kernels(half_device(), kernels_of("{precision: f16}"));
  const Roofline parts = roofline(model.layers[1], cost.forward, 1, device);
  CHECK(roofline_time(model.layers[1], cost.forward, 1, device, 1) ==
        parts.launching + parts.computing + parts.streaming);
}

TEST_CASE("products of Transformer Engine add gradients to fp32 ones", "[models]") {
  const auto parameters = [](const std::string& kernels) {
    const Model model = model_of(
        "{name: m, source: s, input: [8, 4], layers: [{name: v, kind: dense, units: 16, bias: false}, {name: "
        "l, "
        "kind: mean_squared_error}]}");
    const PassCost cost = layer_costs(model, kernels_of(kernels)).front().backward_weights;
    return cost.parameters + cost.further_parameters;
  };
  CHECK(parameters("{precision: f16}") == 64);
  CHECK(parameters("{precision: f16, elementwise: fused}") == 64);
  CHECK(parameters("{precision: f16, gradient_sums: fused}") == 4 * 64);
  CHECK(parameters("{gradient_sums: fused}") == 64);
}

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
