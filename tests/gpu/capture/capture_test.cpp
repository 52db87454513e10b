#include <unistd.h>

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "gpu/capture/selection.hpp"
#include "gpu/capture/step_forecast.hpp"
#include "models/layer_times/trace_text.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast::capture_test {
namespace {

Model net() {
  const YamlNode node = parse_yaml(
      "{name: net, source: s, input: [4], layers: [{name: a, kind: dense, units: 2}, {name: b, kind: "
      "softmax_cross_entropy}]}",
      "net.yaml");
  return read_model(YamlValue(node, ""));
}

/// A trace of two layers, the second without backward passes. Forecasts use the medians of its samples.
Trace trace_of(std::int64_t batch, double forward, double backward, double second) {
  Trace trace;
  trace.name = "net-b" + std::to_string(batch);
  trace.model = "net";
  trace.batch = batch;
  trace.layers.resize(2);
  trace.layers[0].name = "a";
  trace.layers[1].name = "b";
  trace.layers[0].forward.seconds = {forward, 100 * forward, forward};
  trace.layers[0].backward_weights.seconds = {backward, backward, backward};
  trace.layers[1].forward.seconds = {second, second, second};
  return trace;
}

}  // namespace

TEST_CASE("a captured batch size is forecast by its own medians", "[gpu]") {
  const StepForecast f = forecast_step(net(), {trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)}, 32);
  CHECK(f.step.value == Approx(11));
  CHECK(f.below == 32);
  CHECK(f.above == 32);
}

TEST_CASE("between two captured batch sizes every pass is interpolated linearly", "[gpu]") {
  const std::vector<Trace> traces{trace_of(64, 8, 8, 8), trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)};
  const StepForecast f = forecast_step(net(), traces, 28);  // three quarters of the way from 16 to 32
  CHECK(f.step.value == Approx((1.75) + (3.5) + (4.75)));
  CHECK(f.below == 16);
  CHECK(f.above == 32);
}

TEST_CASE("the forecast is the sum of the layer times of stepcast run, without the untimed steps", "[gpu]") {
  std::vector<Trace> traces{trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)};
  traces[0].step_seconds = {5, 5, 50};          // the sum is 7
  traces[1].step_seconds = {11, 11};            // and 11
  traces[1].layers[0].update.seconds = {2, 2};  // 13
  const StepForecast f = forecast_step(net(), traces, 24);
  CHECK(f.step.value == Approx(10));
  double sum = 0;
  for (const LayerSeconds& layer : layer_times(net(), {&traces[0], &traces[1]}, 24).median)
    sum += layer.forward + layer.backward + layer.update;
  CHECK(f.step.value == sum);
}

TEST_CASE("the doubts of both traces come with the forecast", "[gpu]") {
  std::vector<Trace> traces{trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)};
  traces[0].flags = {"noisy"};
  traces[1].flags = {"warm"};
  CHECK(forecast_step(net(), traces, 24).flags == std::vector<std::string>{"warm", "noisy"});
}

TEST_CASE("a batch size outside the captured range is refused", "[gpu][errors]") {
  const std::vector<Trace> traces{trace_of(32, 2, 4, 5), trace_of(16, 1, 2, 4)};
  CHECK_THROWS_AS(forecast_step(net(), traces, 8), InputError);
  CHECK_THROWS_WITH(forecast_step(net(), traces, 33),
                    "--batch: expected 16 to 32, the range of batch sizes captured for net, got 33");
}

namespace {

constexpr int kSteps = 42;  // of a capture with --steps 12 --warm-up 5

double estimate(const char* model, std::int64_t batch, GpuPrecision precision, int steps = kSteps) {
  return TimeEstimate("NVIDIA H200", precision).of(model_of(model), batch, steps).value;
}

}  // namespace

TEST_CASE("estimates grow with the work, and are zero for a GPU without a file", "[gpu]") {
  const double few = estimate("vgg16", 32, GpuPrecision::f32, 10);
  CHECK(estimate("vgg16", 32, GpuPrecision::f32, 110) > few);
  CHECK(estimate("vgg16", 64, GpuPrecision::f32, 10) > few);
  CHECK(estimate("small-cnn", 32, GpuPrecision::f32, 10) < few);
  CHECK(estimate("small-cnn", 32, GpuPrecision::f32, 10) > 1);  // any network needs time to be built
  CHECK(TimeEstimate("NVIDIA H200", GpuPrecision::f32).why_not().empty());
  const TimeEstimate other("NVIDIA A2", GpuPrecision::f32);
  CHECK(other.of(model_of("vgg16"), 32, 10).value == 0);
  CHECK_THAT(other.why_not(), Catch::StartsWith("models/devices has no file for NVIDIA A2"));
}

TEST_CASE("captures on tensor cores are estimated to be shorter than in fp32", "[gpu]") {
  const auto of = [](GpuPrecision precision) { return estimate("resnet50", 64, precision, 1000); };
  CHECK(of(GpuPrecision::tf32) < of(GpuPrecision::f32));
  CHECK(of(GpuPrecision::bf16) < of(GpuPrecision::tf32));
  CHECK(of(GpuPrecision::f16) <
        of(GpuPrecision::bf16));  // the rule's batch norm and max pool in bf16 are slower
  const TimeEstimate kepler("Tesla K80", GpuPrecision::bf16), plain("Tesla K80", GpuPrecision::f32);
  const Model mlp = model_of("seide-dnn");  // no convolutions, whose search differs
  CHECK(kepler.of(mlp, 64, 10).value == plain.of(mlp, 64, 10).value);  // the file has fp32 alone
}

TEST_CASE("each shape of a convolution's pass is searched once, as the traces' notes count them", "[gpu]") {
  CHECK(convolution_passes(model_of("resnet50")) == 68);
  CHECK(convolution_passes(model_of("vgg16")) == 26);
  CHECK(convolution_passes(model_of("gpt2-small")) == 0);
}

// The seconds are those of the captures on an H200 on which the estimate was fitted. The rule has tiles
// since, and is within a half of them.
TEST_CASE("the estimates are those of the captures on an H200", "[gpu]") {
  CHECK(estimate("resnet50", 64, GpuPrecision::bf16) == Approx(3).margin(1.5));
  CHECK(estimate("resnet50", 64, GpuPrecision::f32, 71) == Approx(16).margin(4));
  CHECK(estimate("vgg16", 64, GpuPrecision::bf16) == Approx(3).margin(1));
  CHECK(estimate("gpt2-small", 8, GpuPrecision::bf16) == Approx(4).margin(1));
  CHECK(estimate("gpt2-small", 16, GpuPrecision::bf16) == Approx(6).margin(1));
  CHECK(estimate("gpt2-small", 8, GpuPrecision::tf32) == Approx(4).margin(2));
  // The rule has the attention of PyTorch in fp32, which is slower than that of stepcast-gpu.
  CHECK(estimate("gpt2-small", 16, GpuPrecision::tf32) == Approx(6).margin(3));
}

namespace {

struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "traces.XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }

  void add(const std::string& name, const std::string& model, std::int64_t batch, const std::string& device) {
    Trace trace;
    trace.name = name;
    trace.kind = Trace::Kind::captured;
    trace.model = model;
    trace.batch = batch;
    trace.precision = "f32";
    trace.device = device;
    trace.source = "made up";
    trace.notes = {"clock 1980 MHz"};
    trace.graph_step_seconds = {0.5, 0.25};
    trace.layers.resize(1);
    trace.layers[0].name = "layer";
    trace.layers[0].notes = "forward IMPLICIT_GEMM 1.0 MiB";
    trace.layers[0].forward.seconds = {1, 2, 3};
    write_atomically(path / (name + ".yaml"), to_yaml(trace));
  }

  std::filesystem::path path;
};

}  // namespace

TEST_CASE("traces of one model, precision and layout are found, with the notes of a GPU", "[gpu]") {
  Folder folder;
  folder.add("net-b16-f32-nchw-gpu", "net", 16, "H100");
  folder.add("net-b32-f32-nchw-gpu", "net", 32, "H100");
  folder.add("net-b32-f32-nhwc-gpu", "net", 32, "H100");
  folder.add("other-b8-f32-nchw-gpu", "other", 8, "H100");
  const TraceChoice choice{folder.path, "net", "f32", "nchw"};
  const std::vector<Trace> traces = read_traces(choice);
  REQUIRE(traces.size() == 2);
  CHECK(traces[0].batch + traces[1].batch == 48);
  CHECK(traces[0].notes == std::vector<std::string>{"clock 1980 MHz"});
  CHECK(traces[0].graph_step_seconds == std::vector<double>{0.5, 0.25});
  CHECK(traces[0].layers[0].notes == "forward IMPLICIT_GEMM 1.0 MiB");
  CHECK(models_in(choice) == std::vector<std::string>{"net"});  // the other model has only one trace
}

TEST_CASE("a folder without a fitting trace, or with two devices, is refused", "[gpu][errors]") {
  Folder folder;
  folder.add("net-b16-f32-nchw-gpu", "net", 16, "H100");
  folder.add("net-b32-f32-nchw-gpu", "net", 32, "A100");
  CHECK_THROWS_WITH(read_traces({folder.path, "net", "f32", "nchw"}),
                    Catch::Contains("from different devices, H100 and A100"));
  CHECK_THROWS_WITH(read_traces({folder.path, "net", "bf16", "nchw"}),
                    folder.path.string() + ": no capture of net with precision bf16 and layout nchw");
  CHECK_THROWS_WITH(read_traces({folder.path / "none", "net", "f32", "nchw"}),
                    Catch::Contains("cannot read"));
}
}  // namespace stepcast::capture_test
