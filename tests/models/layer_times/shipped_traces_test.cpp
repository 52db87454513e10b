#include <catch2/catch.hpp>
#include <filesystem>

#include "models/layer_times/derived_trace.hpp"
#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

const std::string kModels = std::string(STEPCAST_SOURCE_DIR) + "/models";

std::vector<Trace> shipped_traces() {
  std::vector<Trace> traces;
  for (const auto& entry : std::filesystem::directory_iterator(kModels + "/traces")) {
    if (entry.path().extension() != ".yaml") continue;
    const YamlNode node = read_yaml(entry.path());
    traces.push_back(read_trace(YamlValue(node, "")));
    CHECK(entry.path().stem() == traces.back().name);
  }
  return traces;
}

}  // namespace

TEST_CASE("every shipped trace is named after its file and fits its model", "[models]") {
  const std::vector<Trace> traces = shipped_traces();
  CHECK(traces.size() >= 10);
  for (const Trace& trace : traces) {
    CAPTURE(trace.name);
    CHECK_NOTHROW(check_fits(trace, load_model(kModels, trace.model)));
    CHECK(step_time(trace).value > 0);
  }
}

TEST_CASE("the traces from PyTorch sum up to the GPU time of their layers, gradients' sums and optimizer",
          "[models]") {
  // 98.1 and 38.0 ms a step were added up from the profiles' kernels by another program than stepcast import.
  const auto step = [](const std::string& name) {
    const YamlNode node = read_yaml(kModels + "/traces/" + name + ".yaml");
    return 1e3 * step_time(read_trace(YamlValue(node, ""))).value;
  };
  CHECK(step("resnet50-b32-v100-dgxs-32gb-pt2021") == Approx(98.1).epsilon(0.01));
  CHECK(step("resnet50-b32-a100-40gb-tf32-pt2024") == Approx(38.0).epsilon(0.01));
}

TEST_CASE("shipped derived traces equal the result of the current rule", "[models]") {
  for (const Trace& trace : shipped_traces()) {
    if (trace.kind != Trace::Kind::derived) continue;
    CAPTURE(trace.name);
    const Device device = load_device(kModels, trace.device);
    const Trace again =
        derive(load_model(kModels, trace.model), trace.batch, device, load_calibration(device, kModels), {});
    CHECK(again.update_arrays == trace.update_arrays);
    REQUIRE(again.layers.size() == trace.layers.size());
    for (std::size_t i = 0; i < trace.layers.size(); ++i) {
      const auto old_passes = passes(trace.layers[i]), new_passes = passes(again.layers[i]);
      for (std::size_t pass = 0; pass < old_passes.size(); ++pass) {
        CHECK(old_passes[pass]->seconds.size() == new_passes[pass]->seconds.size());  // derived without noise
        // The file has six digits; the mean of two samples doubles the rounding error.
        CHECK(median(old_passes[pass]->seconds).value ==
              Approx(median(new_passes[pass]->seconds).value).epsilon(2e-5));
      }
    }
  }
}
