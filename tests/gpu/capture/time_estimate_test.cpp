#include <catch2/catch.hpp>

#include "gpu/capture/selection.hpp"
#include "gpu/capture/step_forecast.hpp"

namespace stepcast {
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

}  // namespace stepcast
