#include "models/tables/tables.hpp"

#include <catch2/catch.hpp>

#include "models/loader.hpp"
#include "read_text.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

const std::string kModels = std::string(STEPCAST_SOURCE_DIR) + "/models";

}  // namespace

TEST_CASE("model_table prints every layer and the totals", "[models]") {
  const Model model = shipped_model("resnet50");
  const std::string text = model_table(model);
  for (const Layer& layer : model.layers) CHECK_THAT(text, Contains("\n" + layer.name + " "));
  CHECK_THAT(text, Contains("64 x 112 x 112"));
  CHECK_THAT(text, Contains("25557032 trainable in 161 tensors, 25610152 with those that are not trained"));
  CHECK_THAT(text, Contains("8.17837 GFLOP forward"));
}

TEST_CASE("trace_table prints medians in ms, spreads, rates and flags", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [1000], layers: [{name: a, kind: dense, units: 1000, bias: false},"
      "{name: l, kind: mean_squared_error}]}");
  Trace trace;
  trace.name = "t";
  trace.model = "m";
  trace.batch = 10;
  trace.flags = {"disturbed"};
  trace.step_seconds = {0.02};
  // Forward and backward-weights: 2 x 2e7 flop in 2 x 0.005 s are 4 GFLOP/s.
  trace.layers = {{"a", {{0.004, 0.005, 0.006}, {}}, {}, {{0.005, 0.005, 0.005}, {}}, {}},
                  {"l", {{0.009, 0.009, 0.009}, {}}, {}, {}, {}}};
  const std::string text = trace_table(trace, &model);
  CHECK_THAT(text, Contains("a              5   40%"));
  CHECK_THAT(text, Contains("        4.0\n"));
  CHECK_THAT(text, Contains("sum of layers    19 ms a step, 526.316 samples/s"));
  CHECK_THAT(text, Contains("untimed steps    20 ms, 1 of them; the layers sum to -5.00 % of that"));
  CHECK_THAT(text, Contains("flag             disturbed"));
  CHECK_THAT(trace_table(trace, nullptr), !Contains("GFLOP/s"));
}

TEST_CASE("device_table prints rates beside the rule", "[models]") {
  const Device device = load_device(kModels, "k80");
  const Calibration calibration = load_calibration(device, kModels);
  const std::string text = device_table(device, &calibration);
  CHECK_THAT(text, Contains("4.37 Tflop/s"));
  CHECK_THAT(text, Contains("fitted on the rates below"));
  CHECK_THAT(text, Contains("+0.0 %"));
  CHECK_THAT(device_table(device, nullptr), !Contains("rule"));
}
