#include "gpu/capture/selection.hpp"

#include <catch2/catch.hpp>

namespace stepcast {

TEST_CASE("estimates grow with the work, and are zero for a GPU without a file", "[gpu]") {
  const Model small = model_of("small-cnn"), large = model_of("vgg16");
  const TimeEstimate h200("NVIDIA H200", GpuPrecision::f32);
  CHECK(h200.why_not().empty());
  const double few = h200.of(large, 32, 10).value, many = h200.of(large, 32, 110).value;
  CHECK(many > few);
  CHECK(h200.of(large, 64, 10).value > few);
  CHECK(h200.of(small, 32, 10).value < few);
  CHECK(h200.of(small, 32, 10).value > 1);  // any network needs time to be built
  const TimeEstimate other("NVIDIA L4", GpuPrecision::f32);
  CHECK(other.of(large, 32, 10).value == 0);
  CHECK_THAT(other.why_not(), Catch::StartsWith("models/devices has no file for NVIDIA L4"));
}

TEST_CASE("captures on tensor cores are estimated to be shorter than in fp32", "[capture]") {
  const Model model = model_of("small-cnn");
  const auto of = [&](GpuPrecision precision) {
    return TimeEstimate("NVIDIA H200", precision).of(model, 64, 1000).value;
  };
  CHECK(of(GpuPrecision::tf32) < of(GpuPrecision::f32));
  CHECK(of(GpuPrecision::bf16) < of(GpuPrecision::tf32));
  CHECK(of(GpuPrecision::f16) == of(GpuPrecision::bf16));
}

}  // namespace stepcast
