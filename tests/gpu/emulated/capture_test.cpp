#include "kernels/timing/capture.hpp"

#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "core/yaml.hpp"
#include "cuda_on_host.hpp"
#include "fake_cuda.hpp"
#include "kernels/cudnn/backend.hpp"
#include "kernels/cudnn/capture/step_events.hpp"
#include "kernels/network/network.hpp"
#include "learned_curve.hpp"
#include "partitioned_training.hpp"
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

/// A vision transformer of one block.
const std::string kTokenNetwork = R"(
name: tokens
source: test
input: [3, 8, 8]
layers:
  - {name: patches, kind: convolution, filters: 16, kernel: 4, stride: 4}
  - {name: sequence, kind: reshape, shape: [4, 16]}
  - {name: class, kind: class_token}
  - {name: positions, kind: position_embedding, rows: 7}
  - {name: norm, kind: layer_norm}
  - {name: qkv, kind: dense, units: 48}
  - {name: attention, kind: attention, heads: 2}
  - {name: sum, kind: add, inputs: [attention, positions]}
  - {name: class_out, kind: first_token}
  - {name: classes, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)";

/// Batch norms with a ReLU; with an addition of what came before, and of another path; and one of either kind
/// whose output has a second reader. The odd channels of the second part are no whole packs.
const std::string kResidual = R"(
name: residual
source: test
input: [3, 8, 6]
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 3, pad: 1, bias: false}
  - {name: bn1, kind: batch_norm}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: convolution, filters: 8, kernel: 3, pad: 1, bias: false}
  - {name: bn2, kind: batch_norm}
  - {name: add2, kind: add, inputs: [bn2, relu1]}
  - {name: relu2, kind: relu}
  - {name: path, kind: convolution, filters: 5, kernel: 1, bias: false}
  - {name: path_bn, kind: batch_norm}
  - {name: conv3, kind: convolution, inputs: [relu2], filters: 5, kernel: 3, pad: 1, bias: false}
  - {name: bn3, kind: batch_norm}
  - {name: add3, kind: add, inputs: [bn3, path_bn]}
  - {name: relu3, kind: relu}
  - {name: bn4, kind: batch_norm}
  - {name: relu4, kind: relu}
  - {name: add4, kind: add, inputs: [relu4, bn4]}
  - {name: flatten, kind: reshape, shape: [240]}
  - {name: classes, kind: dense, units: 4}
  - {name: loss, kind: softmax_cross_entropy}
)";

Model model_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "model.yaml");
  return read_model(YamlValue(node, ""));
}

/// True for an addition or a ReLU that a batch norm computes.
bool is_fused(const Model& model, std::size_t layer) {
  for (const FusedNorm& one : fused_norms(model)) {
    if (one.relu == layer || one.add == static_cast<int>(layer)) return true;
  }
  return false;
}

void check_trace(const Trace& trace, const Model& model) {
  CAPTURE(trace.notes);
  CHECK(trace.step_seconds.size() == kSteps);
  CHECK(trace.graph_step_seconds.size() == kSteps);
  REQUIRE(trace.layers.size() == model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    CHECK(trace.layers[i].name == model.layers[i].name);
    const bool works = model.layers[i].kind != LayerKind::reshape && !is_fused(model, i);
    CHECK(trace.layers[i].forward.seconds.size() == (works ? kSteps : 0));
    const bool trains = !model.layers[i].parameters.empty();
    CHECK(trace.layers[i].update.seconds.size() == (trains ? kSteps : 0));
  }
}

}  // namespace

TEST_CASE("whole steps of all kinds of layers can be captured, also as CUDA graphs", "[fake][long]") {
  const std::vector<std::string> texts{kImages, kMesh,     pools("[3, 24, 28]"), kSequences,
                                       kStack,  kResidual, kTokenNetwork};
  const auto number = GENERATE(range<std::size_t>(0, 7));
  const auto precision = number % 2 == 0 ? GpuPrecision::f32 : GpuPrecision::bf16;
  const Model model = model_of(texts.at(number));
  CAPTURE(model.name);
  check_trace(capture_on_gpu({.precision = precision}, model, {.batch = 2, .steps = kSteps, .warm_up = 1}),
              model);
}

namespace {

/// All parameters after some steps with momentum, and the loss before the last update.
struct Trained {
  std::vector<float> parameters;
  double loss = 0;
};

Trained trained(const GpuOptions& gpu, const Model& model, const PartOptions& part = {}) {
  const auto backend = make_cudnn_backend(gpu);
  Network network(*backend, model,
                  {.batch = 4, .optimizer = {.learning_rate = 0.05, .momentum = 0.9}, .part = part});
  for (int step = 0; step < 3; ++step) network.step();
  Trained result{{}, network.loss()};
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t k = 0; k < model.layers[i].parameters.size(); ++k) {
      const std::vector<float> values = network.kernel(i).read_parameter(k);
      result.parameters.insert(result.parameters.end(), values.begin(), values.end());
    }
  }
  return result;
}

}  // namespace

TEST_CASE("batch norms that compute additions and ReLUs train like separate layers, to rounding",
          "[fake][fused]") {
  const auto layout = GENERATE(ImageLayout::nchw, ImageLayout::nhwc);
  const bool accumulate = GENERATE(false, true);
  const Model model = model_of(kResidual);
  const PartOptions part{.accumulate = accumulate};
  const Trained fused = trained({.layout = layout}, model, part);
  const Trained separate = trained({.layout = layout, .fuses = false}, model, part);
  CHECK(fused.loss == Approx(separate.loss).epsilon(1e-4));
  REQUIRE(fused.parameters.size() == separate.parameters.size());
  double worst = 0;
  for (std::size_t i = 0; i < fused.parameters.size(); ++i)
    worst = std::max(worst, std::abs(double{fused.parameters[i]} - double{separate.parameters[i]}));
  CHECK(worst < 1e-4);  // 3 steps of rate 0.05 over rounding of 1e-6, through five norms
}

TEST_CASE("a batch norm that computes a ReLU keeps one map in place of three, and its trace says so",
          "[fake][fused]") {
  const Model model = model_of(kResidual);
  const CaptureOptions options{.batch = 2, .steps = kSteps, .warm_up = 1};
  const Trace trace = capture_on_gpu({.precision = GpuPrecision::bf16}, model, options);
  CHECK(trace.layers[1].notes == "with the ReLU after it");
  CHECK(trace.layers[4].notes == "with the addition and the ReLU after it");
  CHECK(trace.layers[13].notes.empty());  // two layers read this norm
  CHECK(trace.layers[14].forward.seconds.size() == kSteps);
  const Trace separate = capture_on_gpu({.precision = GpuPrecision::bf16, .fuses = false}, model, options);
  CHECK(separate.layers[2].forward.seconds.size() == kSteps);
  CHECK(separate.layers[6].backward_data.seconds.size() == kSteps);
  int maps[2] = {};
  for (const bool fuses : {false, true}) {
    const auto backend = make_cudnn_backend({.fuses = fuses});
    const Network network(*backend, model, {.batch = 2});
    maps[fuses] = fake::allocations_of(sizeof(float) * 2 * 8 * 8 * 6);
  }
  // Forward: relu1, add2 and relu2 have none. Backward: relu1 and relu2 pass their gradients on; bn2 has one
  // for relu1, which add2 has not.
  CHECK(maps[false] - maps[true] == 4);
}

TEST_CASE("one kernel updates all layers, to the bits of one kernel a layer", "[fake][fused]") {
  const Model model = model_of(kImages);
  const auto kind = GENERATE(Optimizer::Kind::sgd, Optimizer::Kind::adam);
  std::vector<std::vector<float>> values;
  std::vector<int> launches;
  for (const bool fuses : {false, true}) {
    const auto backend = make_cudnn_backend({.fuses = fuses});
    Network network(*backend, model, {.batch = 2, .optimizer = {.kind = kind, .momentum = 0.9}});
    network.step();
    const emulated::LaunchCount count;
    network.begin_update();
    network.update_layers(0, model.layers.size());
    launches.push_back(count.launches());
    values.push_back({});
    for (const std::size_t layer : {0, 3, 6, 8}) {
      const std::vector<float> read = network.kernel(layer).read_parameter(0);
      values.back().insert(values.back().end(), read.begin(), read.end());
    }
  }
  CHECK(launches == std::vector<int>{4, 1});
  CHECK(values[0] == values[1]);
}

TEST_CASE("one kernel converts all weights, and one all gradients, to the bits of one kernel a layer",
          "[fake][fused]") {
  const Model model = model_of(kImages);
  const bool accumulate = GENERATE(false, true);
  std::vector<std::vector<float>> values;
  std::vector<int> launches;
  for (const bool fuses : {false, true}) {
    const auto backend = make_cudnn_backend({.precision = GpuPrecision::bf16, .fuses = fuses});
    Network network(*backend, model,
                    {.batch = 2, .optimizer = {.learning_rate = 0.1}, .part = {.accumulate = accumulate}});
    for (int step = 0; step < 2; ++step) network.step();
    const emulated::LaunchCount count;
    network.run_forward(0, model.layers.size());
    network.run_backward(0, model.layers.size());
    launches.push_back(count.launches());
    for (std::size_t i = 0; i < model.layers.size(); ++i) network.kernel(i).run(Pass::forward);
    values.push_back({static_cast<float>(network.loss())});
    for (const std::size_t layer : {0, 3, 6, 8}) {
      for (const auto& read :
           {network.kernel(layer).read_parameter(0), network.kernel(layer).read_gradient(0)})
        values.back().insert(values.back().end(), read.begin(), read.end());
    }
  }
  CHECK(values[0] == values[1]);
  // Two convolutions and two dense layers have weights, and the dense layers biases too: 6 conversions are
  // one. Gradients of two convolutions are converted; sums of gradients are made for 4 layers or for all at
  // once.
  CHECK(launches[0] - launches[1] == (6 - 1) + (2 - 1) + (accumulate ? 4 - 1 : 0));
}

TEST_CASE("a part of the layers converts its own weights and gradients alone", "[fake][fused]") {
  const Model model = model_of(kImages);
  const GpuOptions bf16{.precision = GpuPrecision::bf16};
  const auto backend = make_cudnn_backend(bf16), other = make_cudnn_backend(bf16);
  Network whole(*backend, model, {.batch = 2}), parts(*other, model, {.batch = 2});
  whole.step();
  const std::size_t layers = model.layers.size();
  parts.run_forward(0, 4);
  parts.run_forward(4, layers);
  parts.run_backward(5, layers);
  parts.run_backward(0, 5);
  parts.begin_update();
  parts.update_layers(0, 2);
  parts.update_layers(2, layers);
  for (const std::size_t layer : {0, 3, 6, 8})
    CHECK(parts.kernel(layer).read_parameter(0) == whole.kernel(layer).read_parameter(0));
}

TEST_CASE("layers share the time of the kernel that updates all of them by their parameters",
          "[fake][fused]") {
  const Model model = model_of(kImages);
  const Trace trace =
      capture_on_gpu({.precision = GpuPrecision::f32}, model, {.batch = 2, .steps = kSteps, .warm_up = 1});
  const double first = trace.layers[0].update.seconds[0], dense = trace.layers[6].update.seconds[0];
  REQUIRE(first > 0);
  // Weights and biases, each in whole multiples of 16 elements.
  CHECK(dense / first == Approx((512.0 * 16 + 16) / (2 * 8 * 9 + 16)));
  CHECK_THAT(trace.notes,
             Catch::VectorContains(
                 std::string("one kernel updates the parameters of all layers, which share its time by their "
                             "elements")));
}

TEST_CASE("what a CUDA graph cannot hold is refused while one is captured", "[fake]") {
  void* memory = nullptr;
  fake::capturing() = true;
  const cudaError_t made = cudaMalloc(&memory, 8), waited = cudaStreamSynchronize(nullptr);
  fake::capturing() = false;
  CHECK(made != cudaSuccess);
  CHECK(waited != cudaSuccess);
}

TEST_CASE("a step as a graph trains like the step that was captured", "[fake]") {
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

TEST_CASE("the layers of a step whose passes are replayed as graphs share its time", "[fake][graphs]") {
  const Model model = model_of(kImages);
  const Trace trace = capture_on_gpu({.graphs = true}, model, {.batch = 2, .steps = kSteps, .warm_up = 1});
  check_trace(trace, model);
  for (std::size_t step = 0; step < kSteps; ++step) {
    double sum = 0;
    for (const LayerTrace& layer : trace.layers) {
      for (const PassSamples* pass :
           {&layer.forward, &layer.backward_data, &layer.backward_weights, &layer.update})
        sum += pass->seconds.empty() ? 0 : pass->seconds[step];
    }
    CHECK(sum == Approx(trace.step_seconds[step]));
  }
  CHECK_THAT(trace.notes,
             Catch::VectorContains(std::string("the step's passes were replayed as CUDA graphs; "
                                               "layers share its time as they do without graphs")));
}

TEST_CASE("attention layers share the memory of their scores, and fused ones have none", "[fake]") {
  const Model model = model_of(R"(
name: three
source: test
input: [7, 32]
layers:
  - {name: one, kind: dense, units: 96}
  - {name: a, kind: attention, heads: 4}
  - {name: two, kind: dense, units: 96}
  - {name: b, kind: attention, heads: 4}
  - {name: three, kind: dense, units: 96}
  - {name: c, kind: attention, heads: 4, causal: true}
  - {name: classes, kind: dense, units: 5}
  - {name: loss, kind: softmax_cross_entropy}
)");
  const auto squares = [&](const GpuOptions& options) {
    const auto backend = make_cudnn_backend(options);
    const Network network(*backend, model, {.batch = 3});
    const std::size_t element = options.precision == GpuPrecision::bf16 ? 2 : 4;
    return fake::allocations_of(element * 3 * 4 * 7 * 7);
  };
  CHECK(squares({}) == 1 + 3);  // scores, and the probabilities of each layer
  CHECK(squares({.precision = GpuPrecision::bf16, .fuses = false}) == 1 + 3);
  CHECK(squares({.precision = GpuPrecision::bf16}) == 0);
  const Trace trace =
      capture_on_gpu({.precision = GpuPrecision::bf16}, model, {.batch = 2, .steps = kSteps, .warm_up = 1});
  check_trace(trace, model);
  CHECK_THAT(trace.layers[1].notes, Catch::StartsWith("fused, forward ENGINE_14"));
}

TEST_CASE("a network whose tensors are too large for cuDNN's calls is refused before it is built",
          "[fake][errors]") {
  Model model = model_of(kImages);
  model.layers.front().output = {128, 4096, 4096};
  CHECK_THROWS_WITH(check_capture_fits({}, model, {.batch = 1}),
                    Catch::Contains("has a tensor of 2.147e+09 elements with batch 1, and cuDNN's calls take "
                                    "less than 2^31; take a smaller batch"));
}

TEST_CASE("a shard of tensor-parallel layers is captured in its own shapes", "[fake]") {
  const SharedPart part = tensor_shard(model_of(kStack), 2, 1);
  CaptureOptions options{.batch = 2, .steps = kSteps, .warm_up = 1};
  options.part.tensor_shard = &part;
  check_trace(capture_on_gpu({.precision = GpuPrecision::bf16}, part.model, options), part.model);
}

}  // namespace stepcast::test
