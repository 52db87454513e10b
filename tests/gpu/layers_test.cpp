#include "gpu/check/check_layers.hpp"
#include "gpu_or_skip.hpp"

using namespace stepcast;

namespace {

void check_all(GpuPrecision precision, ImageLayout layout) {
  const auto backend = make_cudnn_backend({.precision = precision, .layout = layout});
  for (const auto& found : {check_layers(*backend), check_partitioned_layers(*backend)}) {
    for (const Deviation& one : found) {
      INFO(one.layer << ", " << one.array);
      CHECK(one.error <= rounding_tolerance(precision));
    }
  }
}

}  // namespace

TEST_CASE("every layer computes what the plain loops compute, f32", "[gpu]") {
  if (!test::gpu_or_skip()) return;
  check_all(GpuPrecision::f32, ImageLayout::nchw);
  check_all(GpuPrecision::f32, ImageLayout::nhwc);
}

TEST_CASE("every layer computes what the plain loops compute, tf32", "[gpu]") {
  if (!test::gpu_or_skip()) return;
  check_all(GpuPrecision::tf32, ImageLayout::nchw);
  check_all(GpuPrecision::tf32, ImageLayout::nhwc);
}

TEST_CASE("every layer computes what the plain loops compute, f16", "[gpu]") {
  if (!test::gpu_or_skip()) return;
  check_all(GpuPrecision::f16, ImageLayout::nchw);
  check_all(GpuPrecision::f16, ImageLayout::nhwc);
}

TEST_CASE("every layer computes what the plain loops compute, bf16", "[gpu]") {
  if (!test::gpu_or_skip()) return;
  check_all(GpuPrecision::bf16, ImageLayout::nchw);
  check_all(GpuPrecision::bf16, ImageLayout::nhwc);
}
