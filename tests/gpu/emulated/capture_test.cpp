#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <optional>

#include "core/yaml.hpp"
#include "kernels/cudnn/backend.hpp"
#include "kernels/cudnn/capture/step_events.hpp"
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

TEST_CASE("a step as a graph trains like the step that was captured", "[pretended]") {
  const Model model = model_of(kImages);
  std::vector<std::vector<float>> trained;
  for (const bool as_graph : {false, true}) {
    const auto device = std::make_shared<cudnn::Device>(GpuOptions{});
    const auto backend = cudnn::make_backend(device);
    Network network(*backend, model, {.batch = 2});
    cudnn::StepEvents events(device, network);
    events.time_whole_step();
    std::optional<cudnn::StepGraph> graph;
    if (as_graph) graph.emplace(device, network);
    for (int step = 0; step < 3; ++step) as_graph ? graph->time() : events.time_whole_step();
    trained.push_back(network.kernel(0).read_parameter(0));
  }
  CHECK(trained[0] == trained[1]);
}

TEST_CASE("attention layers share the memory of their scores", "[pretended]") {
  const Model model = model_of(R"(
name: three
source: test
input: [7, 24]
layers:
  - {name: one, kind: dense, units: 72}
  - {name: a, kind: attention, heads: 4}
  - {name: two, kind: dense, units: 72}
  - {name: b, kind: attention, heads: 4}
  - {name: three, kind: dense, units: 72}
  - {name: c, kind: attention, heads: 4}
  - {name: classes, kind: dense, units: 5}
  - {name: loss, kind: softmax_cross_entropy}
)");
  const auto backend = make_cudnn_backend({});
  const Network network(*backend, model, {.batch = 3});
  const std::size_t square = sizeof(float) * 3 * 4 * 7 * 7;
  CHECK(pretended::allocations_of(square) == 1 + 3);  // scores, and the probabilities of each layer
}

TEST_CASE("a network whose tensors are too large for cuDNN's calls is refused before it is built",
          "[pretended][errors]") {
  Model model = model_of(kImages);
  model.layers.front().output = {128, 4096, 4096};
  CHECK_THROWS_WITH(check_capture_fits({}, model, {.batch = 1}),
                    Catch::Contains("has a tensor of 2.147e+09 elements with batch 1, and cuDNN's calls take "
                                    "less than 2^31; take a smaller batch"));
}

TEST_CASE("a shard of tensor-parallel layers is captured in its own shapes", "[pretended]") {
  const SharedPart part = tensor_shard(model_of(kStack), 2, 1);
  CaptureOptions options{.batch = 2, .steps = kSteps, .warm_up = 1};
  options.part.tensor_shard = &part;
  check_trace(capture_on_gpu({.precision = GpuPrecision::bf16}, part.model, options), part.model);
}

}  // namespace stepcast::test
