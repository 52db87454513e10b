#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "models/network/layer.hpp"
#include "models/partition/layer_partition.hpp"
#include "read_text.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

Model with_layer(const std::string& keys) {
  return model_of(
      "{name: m, source: s, input: [3, 8, 8], layers: [{name: c, kind: convolution, filters: 4, "
      "kernel: 3, pad: 1}, {name: r, kind: relu}, {name: what, kind: measured, " +
      keys + "}, {name: f, kind: dense, units: 10}, {name: loss, kind: mean_squared_error}]}");
}

}  // namespace

TEST_CASE("a measured layer has the output and the trained arrays that its file says", "[models]") {
  const Model model = with_layer("inputs: [r, c, input], output: [7], parameters: [5, 30]");
  const Layer& layer = layer_named(model, "what");
  CHECK(layer.inputs == std::vector<int>{1, 0, -1});
  CHECK(layer.output == Shape{7});
  CHECK(layer_named(model, "f").parameters.front().shape == Shape{10, 7});
  CHECK(gradient_tensors(model) == 2 + 2 + 2);
  CHECK(trainable_parameters(model) == 112 + 35 + 80);
  CHECK(trainable_parameters(with_layer("output: [7]")) == 112 + 80);
}

TEST_CASE("a network may end in a measured layer, but no other output is left unread", "[models]") {
  const std::string head =
      "{name: m, source: s, input: [8], layers: [{name: f, kind: dense, units: 4}, "
      "{name: a, kind: measured, output: [1]}";
  CHECK(model_of(head + "]}").layers.size() == 2);
  CHECK_THROWS_WITH(model_of(head + ", {name: b, kind: measured, inputs: [f], output: [1]}]}"),
                    Contains("no layer reads the output of a"));
}

TEST_CASE("a measured layer without an output is refused", "[models]") {
  CHECK_THROWS_WITH(with_layer("parameters: [5]"), Contains("output: missing"));
  CHECK_THROWS_WITH(with_layer("output: []"), Contains("output: expected a shape of at least one integer"));
  CHECK_THROWS_WITH(with_layer("output: [7], parameters: [0]"), Contains("parameters[0]"));
  CHECK_THROWS_WITH(with_layer("inputs: [], output: [7]"), Contains("one or more inputs"));
}

TEST_CASE("a measured layer cannot be partitioned, and no rule gives its time", "[models]") {
  const Model model = with_layer("output: [7]");
  const char* const why =
      "layer what is of kind measured: its times are those of the whole layer, so it cannot be partitioned";
  CHECK(filter_problem(model, 2) == why);
  CHECK(filter_problem(model, 1).empty());
  CHECK(tensor_problem(model, 2) == std::string("the network has no transformer blocks; ") + why);
  const Device device = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "v100-sxm2-16gb");
  CHECK_THROWS_WITH(derive(model, 8, device, {}, {}), Contains("layer what is of kind measured"));
}
