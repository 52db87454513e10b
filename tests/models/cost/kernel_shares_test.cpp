#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "models/cost/roofline.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

const std::string kModelFolder = std::string(STEPCAST_SOURCE_DIR) + "/models";

/// A device whose shares are 1 and which moves 1 GB and computes 1 Gflop in a second.
Device unit_device() {
  Device device;
  device.name = "unit";
  device.peak = {1e9};
  device.memory_bandwidth = {1e9};
  device.kernels = KernelShares{};
  return device;
}

/// Layer `a` behind another layer with parameters, so that it has all passes.
Model behind_layer(const std::string& input, const std::string& layer) {
  return model_of("{name: m, source: s, input: " + input +
                  ", layers: [{name: b, kind: convolution, filters: " + input.substr(1, input.find(',') - 1) +
                  ", kernel: 1}, {name: a, " + layer + "}, {name: l, kind: mean_squared_error}]}");
}

double seconds(const Model& model, PassCost LayerCost::*pass, const Device& device, std::int64_t batch = 1) {
  return roofline_time(model.layers[1], layer_costs(model)[1].*pass, batch, device, 1).value;
}

KernelChoice only_precision(KernelChoice::Precision of) {
  KernelChoice choice;
  choice.precision = of;
  return choice;
}

/// One row of layers.csv without quotes.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) result.push_back(cell);
  return result;
}

double pass_time(const Layer& layer, const LayerCost& cost, const std::string& pass, const Device& device) {
  const auto time = [&](const PassCost& one) {
    return one.kernels == 0 ? 0 : roofline_time(layer, one, 32, device, 1).value;
  };
  if (pass == "forward") return time(cost.forward);
  if (pass == "backward_data") return time(cost.backward_data);
  if (pass == "backward_weights") return time(cost.backward_weights);
  return time(cost.backward_data) + time(cost.backward_weights);
}

}  // namespace

TEST_CASE("an output up to the size of the cache is read from it by the next layer's forward pass",
          "[models]") {
  Device device = unit_device();
  const Model relu = behind_layer("[1000, 1, 1]", "kind: relu");
  device.kernels->cache = {4000};
  CHECK(seconds(relu, &LayerCost::forward, device) == Approx(4000e-9));      // written, not read
  CHECK(seconds(relu, &LayerCost::forward, device, 2) == Approx(16000e-9));  // twice the cache: nothing left
  device.kernels->cache = {6000};
  CHECK(seconds(relu, &LayerCost::forward, device, 2) == Approx((16000 - 8000 * (2 - 8. / 6)) * 1e-9));
  CHECK(seconds(relu, &LayerCost::backward_data, device) ==
        Approx(12000e-9));  // the gradient, not the output
  device.kernels->cache = {0};
  CHECK(seconds(relu, &LayerCost::forward, device) == Approx(8000e-9));
}

TEST_CASE("batch norm of fewer channels than multiprocessors leaves the others idle", "[models]") {
  Device device = unit_device();
  const Model norm = behind_layer("[50, 100, 1]", "kind: batch_norm");
  const double full = seconds(norm, &LayerCost::forward, device);
  device.multiprocessors = 40;
  CHECK(seconds(norm, &LayerCost::forward, device) == full);
  device.multiprocessors = 100;
  CHECK(seconds(norm, &LayerCost::forward, device) == Approx(2 * full));
  device.kernels->choice.layout = KernelChoice::Layout::nhwc;  // kernels that do not work by channels
  CHECK(seconds(norm, &LayerCost::forward, device) == full);
}

TEST_CASE("a convolution with a window of 1 and channels first is a product for each image", "[models]") {
  Device device = unit_device();
  device.memory_bandwidth = {1e6};
  device.peak = {1e3};
  const auto forward = [&](const char* input, KernelChoice::Layout layout) {
    const Model point = behind_layer(input, "kind: convolution, filters: 8, kernel: 1");
    device.kernels->choice.layout = layout;
    return seconds(point, &LayerCost::forward, device);
  };
  device.kernels->channel_multiple = 8;
  constexpr auto first = KernelChoice::Layout::nchw, last = KernelChoice::Layout::nhwc;
  const double work = 2 * 8 * 8 * 196 / 1e3, odd_work = 2 * 8 * 8 * 49 / 1e3;
  CHECK(forward("[8, 14, 14]", last) == Approx(work));
  CHECK(forward("[8, 14, 14]", first) == Approx(work));
  CHECK(forward("[8, 7, 7]", last) == Approx(odd_work));
  CHECK(forward("[8, 7, 7]", first) == Approx(odd_work + 2 * 4 * 8 * 49 / 1e6));  // 196 bytes a row: copied
  device.kernels->channel_multiple = 0;
  CHECK(forward("[8, 14, 14]", first) == Approx(work));
  device.multiprocessors = 1;  // the positions of each image fill tiles of their own
  const double joined = forward("[8, 14, 14]", first);
  device.kernels->channel_multiple = 8;
  const Model two = behind_layer("[8, 14, 14]", "kind: convolution, filters: 8, kernel: 1");
  CHECK(forward("[8, 14, 14]", first) == Approx(joined));
  CHECK(seconds(two, &LayerCost::forward, device, 8) == Approx(8 * joined));
  device.kernels->choice.layout = KernelChoice::Layout::nhwc;
  CHECK(seconds(two, &LayerCost::forward, device, 8) < 7.5 * joined);
}

TEST_CASE("where kernels need another layout, inputs and outputs are copied and channels padded",
          "[models]") {
  Device device = unit_device();
  device.memory_bandwidth = {1e6};
  device.peak = {1e3};
  const Model window = behind_layer("[3, 8, 8]", "kind: convolution, filters: 4, kernel: 3, pad: 1");
  const Model point = behind_layer("[3, 8, 8]", "kind: convolution, filters: 4, kernel: 1");
  const double before = seconds(window, &LayerCost::forward, device);
  const double back_before = seconds(window, &LayerCost::backward_data, device);
  const double point_before = seconds(point, &LayerCost::forward, device);
  device.kernels->channel_multiple = 8;
  const double input = 2 * 4 * 3 * 64 / 1e6, output = 2 * 4 * 4 * 64 / 1e6;
  CHECK(seconds(window, &LayerCost::forward, device) == Approx(before * 8 / 3 + input));
  CHECK(seconds(window, &LayerCost::backward_data, device) == Approx(back_before * 8 / 3 + input + output));
  CHECK(seconds(point, &LayerCost::forward, device) == Approx(point_before));
  device.kernels->choice.layout = KernelChoice::Layout::nhwc;
  CHECK(seconds(window, &LayerCost::forward, device) == Approx(before * 8 / 3));
}

TEST_CASE("gradients of filters have a factor of their own", "[models]") {
  Device device = unit_device();
  device.memory_bandwidth = {1e15};
  const Model window = behind_layer("[3, 8, 8]", "kind: convolution, filters: 4, kernel: 3, pad: 1");
  const Model dense = model_of(
      "{name: m, source: s, input: [8], layers: [{name: b, kind: dense, units: 8}, "
      "{name: a, kind: dense, units: 8}, {name: l, kind: mean_squared_error}]}");
  const double before = seconds(window, &LayerCost::backward_weights, device);
  const double data = seconds(window, &LayerCost::backward_data, device);
  const double units = seconds(dense, &LayerCost::backward_weights, device);
  device.kernels->weights = 0.5;
  CHECK(seconds(window, &LayerCost::backward_weights, device) == Approx(2 * before));
  CHECK(seconds(window, &LayerCost::backward_data, device) == data);
  CHECK(seconds(dense, &LayerCost::backward_weights, device) == units);
}

TEST_CASE("the rule is within 15 % of the layers of two profiles, and within 6 % of their steps",
          "[models]") {
  struct Case {
    std::string source, device;
    KernelChoice choice;
  };
  const auto given =
      GENERATE(values<Case>({{"kineto-2021", "v100-sxm2-16gb", {}},
                             {"hta-2024", "a100-40gb", only_precision(KernelChoice::Precision::tf32)}}));
  CAPTURE(given.source);
  const Model model = shipped_model("resnet50");
  const Device device = with_kernels(load_device(kModelFolder, given.device), given.choice);
  const std::vector<LayerCost> costs = layer_costs(model);
  std::map<std::string, std::pair<double, double>> kinds;  // measured and rule
  std::vector<double> errors;
  double measured = 0, rule = 0, apart = 0;
  std::ifstream file(kModelFolder + "/measured/layers.csv");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> row = cells(line);
    if (row.at(0) != given.source) continue;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      if (model.layers[i].name != row.at(5)) continue;
      const double real = 1e-6 * std::stod(row.at(8)),
                   time = pass_time(model.layers[i], costs[i], row.at(7), device);
      measured += real;
      rule += time;
      apart += std::abs(time - real);
      errors.push_back(std::abs(time / real - 1));
      kinds[row.at(6)].first += real;
      kinds[row.at(6)].second += time;
    }
  }
  REQUIRE(errors.size() > 300);
  std::nth_element(errors.begin(), errors.begin() + (errors.size() / 2), errors.end());
  CHECK(errors[errors.size() / 2] < 0.15);
  CHECK(apart / measured < 0.15);
  CHECK(std::abs(rule / measured - 1) < 0.06);
  for (const char* kind : {"convolution", "batch_norm", "relu", "add"}) {
    CAPTURE(kind);
    CHECK(std::abs(kinds.at(kind).second / kinds.at(kind).first - 1) < 0.15);
  }
}

TEST_CASE("fp8: the products of dense layers run at its peak, after casts; the last stays in bf16",
          "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [64], layers: [{name: a, kind: dense, units: 64, bias: false}, {name: b, "
      "kind: dense, units: 32, bias: false}, {name: c, kind: dense, units: 16, bias: false}, {name: l, kind: "
      "softmax_cross_entropy}]}");
  KernelChoice bf16 = only_precision(KernelChoice::Precision::bf16), fp8 = bf16;
  fp8.precision = KernelChoice::Precision::fp8;
  Device device = unit_device();
  device.memory_bandwidth = {1e30};
  device.kernels->choice = bf16;
  const auto time = [&](std::size_t layer, PassCost LayerCost::*pass, const KernelChoice& choice) {
    return roofline_time(model.layers[layer], layer_costs(model, choice)[layer].*pass, 8, device, 1).value;
  };
  device.fp8 = PrecisionKernels{{4e9}, {}};
  device.fp8->kernels.dense = 0.5;
  for (const auto pass : {&LayerCost::forward, &LayerCost::backward_data, &LayerCost::backward_weights}) {
    CHECK(time(1, pass, bf16) == Approx(2 * time(1, pass, fp8)));  // 4 times the peak at half its share
    CHECK(time(2, pass, bf16) == Approx(time(2, pass, fp8)));
  }
  device.memory_bandwidth = {1e9};
  device.peak = device.fp8->peak = {1e30};
  // Layer b reads 64 and writes 32 elements of a sample: the cast of its input and weights moves 5 B each.
  const double casts = 5 * (8 * 64 + 64 * 32) / 1e9;
  CHECK(time(1, &LayerCost::forward, fp8) - time(1, &LayerCost::forward, bf16) == Approx(casts));
  CHECK(time(1, &LayerCost::backward_data, fp8) - time(1, &LayerCost::backward_data, bf16) ==
        Approx((5 * 8 * 32 + 3 * 64 * 32) / 1e9));
  CHECK(time(1, &LayerCost::backward_weights, fp8) - time(1, &LayerCost::backward_weights, bf16) ==
        Approx(3 * 8 * (64 + 32) / 1e9));
  // Fused: one kernel casts inputs and error signals to both layouts, and the one before finds the scale.
  bf16.elementwise = fp8.elementwise = KernelChoice::Elementwise::fused;
  CHECK(time(1, &LayerCost::forward, fp8) - time(1, &LayerCost::forward, bf16) ==
        Approx((4 * 8 * 64 + 5 * 64 * 32) / 1e9));
  CHECK(time(1, &LayerCost::backward_data, fp8) - time(1, &LayerCost::backward_data, bf16) ==
        Approx((4 * 8 * 32 + 3 * 64 * 32) / 1e9));
  CHECK(time(1, &LayerCost::backward_weights, fp8) == Approx(time(1, &LayerCost::backward_weights, bf16)));
}

TEST_CASE("a device without fp8 refuses it", "[models][errors]") {
  const KernelChoice fp8 = only_precision(KernelChoice::Precision::fp8);
  Device device = unit_device();
  device.precisions[KernelChoice::Precision::bf16] = {{2e9}, *device.kernels};
  CHECK_THROWS_WITH(with_kernels(device, fp8),
                    "device unit: precision: expected one of f32, bf16, got \"fp8\"");
  device.precisions[KernelChoice::Precision::fp8] = {{4e9}, *device.kernels};
  CHECK(with_kernels(device, fp8).peak.value == 2e9);
  CHECK(with_kernels(device, fp8).fp8->peak.value == 4e9);
}

TEST_CASE("norms, SwiGLU and rotations that are written out move what their operations do", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [8, 64], layers: [{name: n, kind: rms_norm}, {name: d, kind: dense, "
      "units: "
      "32, bias: false}, {name: s, kind: swiglu}, {name: l, kind: mean_squared_error}]}");
  KernelChoice fused = only_precision(KernelChoice::Precision::bf16), eager = fused;
  fused.elementwise = KernelChoice::Elementwise::fused;
  const auto bytes = [&](std::size_t layer, PassCost LayerCost::*pass, const KernelChoice& choice) {
    const PassCost cost = layer_costs(model, choice)[layer].*pass;
    return 2 * (cost.activations + cost.further_activations);
  };
  const double norm = 8 * 64, half = 8 * 16;  // elements
  CHECK(bytes(0, &LayerCost::forward, fused) == 4 * norm);
  CHECK(bytes(0, &LayerCost::forward, eager) == 36 * norm);
  CHECK(bytes(0, &LayerCost::backward_weights, eager) == 76 * norm);
  CHECK(bytes(2, &LayerCost::forward, eager) == 2 * 5 * half);
  CHECK(bytes(2, &LayerCost::backward_data, eager) == 2 * 9 * half);
  CHECK(bytes(2, &LayerCost::backward_data, fused) == 2 * 5 * half);
}
