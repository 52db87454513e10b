#include "models/cost/cost.hpp"

#include <catch2/catch.hpp>

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
