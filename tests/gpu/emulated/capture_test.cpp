#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>

#include "core/yaml.hpp"
#include "kernels/timing/gpu_capture.hpp"
#include "learned_curve.hpp"
#include "partitioned_training.hpp"
#include "pretended_cuda.hpp"
#include "spatial_training.hpp"

// Tests of captures on a fake GPU: that a trace is complete, and that no call of a step allocates, frees or
// waits, which a CUDA graph cannot contain and which would stall a GPU.
namespace stepcast::test {
namespace {

constexpr int kSteps = 3;

const std::string kSequences = R"(
name: sequences
source: test
input: [5, 3]
layers:
  - {name: lstm, kind: lstm, hidden: 4}
  - {name: gru, kind: gru, hidden: 3, bidirectional: true, output: last}
  - {name: drop, kind: dropout, rate: 0.5}
  - {name: classes, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)";

Model model_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "model.yaml");
  return read_model(YamlValue(node, ""));
}

void check_trace(const Trace& trace, const Model& model) {
  CAPTURE(trace.notes);
  CHECK(trace.step_seconds.size() == kSteps);
  CHECK(trace.graph_step_seconds.size() == kSteps);
  REQUIRE(trace.layers.size() == model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    CHECK(trace.layers[i].name == model.layers[i].name);
    const bool works = model.layers[i].kind != LayerKind::reshape;
    CHECK(trace.layers[i].forward.seconds.size() == (works ? kSteps : 0));
    const bool trains = !model.layers[i].parameters.empty();
    CHECK(trace.layers[i].update.seconds.size() == (trains ? kSteps : 0));
  }
}

}  // namespace

TEST_CASE("whole steps of all kinds of layers can be captured, also as CUDA graphs", "[pretended]") {
  const std::vector<std::string> texts{kImages, kMesh, pools("[3, 24, 28]"), kSequences, kStack};
  const auto number = GENERATE(range<std::size_t>(0, 5));
  const auto precision = number % 2 == 0 ? GpuPrecision::f32 : GpuPrecision::bf16;
  const Model model = model_of(texts.at(number));
  CAPTURE(model.name);
  check_trace(capture_on_gpu({.precision = precision}, model, {.batch = 2, .steps = kSteps, .warm_up = 1}),
              model);
}

TEST_CASE("what a CUDA graph cannot hold is refused while one is captured", "[pretended]") {
  void* memory = nullptr;
  pretended::capturing() = true;
  const cudaError_t made = cudaMalloc(&memory, 8), waited = cudaStreamSynchronize(nullptr);
  pretended::capturing() = false;
  CHECK(made != cudaSuccess);
  CHECK(waited != cudaSuccess);
}

TEST_CASE("a shard of tensor-parallel layers is captured in its own shapes", "[pretended]") {
  const SharedPart part = tensor_shard(model_of(kStack), 2, 1);
  CaptureOptions options{.batch = 2, .steps = kSteps, .warm_up = 1};
  options.part.tensor_shard = &part;
  check_trace(capture_on_gpu({.precision = GpuPrecision::bf16}, part.model, options), part.model);
}

}  // namespace stepcast::test
