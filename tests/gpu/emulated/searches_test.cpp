#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "check/cases.hpp"
#include "core/error.hpp"
#include "core/yaml.hpp"
#include "fake_cudnn.hpp"
#include "gpu/check/check_layers.hpp"
#include "kernels/cudnn/layers/windows.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"
#include "kernels/timing/capture.hpp"

// Tests of the choice of convolution algorithms with fakes of cuDNN's searches (fake_searches.cpp).
namespace stepcast::test {
namespace {

using cudnn::CudnnTensor;

/// A convolution; the fake graph API has no engine for strides above 1, so that these take the older calls.
struct Search {
  explicit Search(GpuPrecision precision, std::int64_t channels = 4, std::int64_t stride = 2)
      : device(std::make_shared<cudnn::Device>(GpuOptions{
            .precision = precision, .layout = ImageLayout::nhwc, .workspace = std::size_t{1} << 20})),
        x(device, {2, channels, 6, 6}, device->element(), cudnn::Order::channels_last),
        y(device, {2, 8, 6 / stride, 6 / stride}, device->element(), cudnn::Order::channels_last),
        call(cudnn::describe_call(*device, x, y, {{8, channels, 3, 3}, true, {1, 1}, {stride, stride}})) {}

  std::shared_ptr<cudnn::Device> device;
  CudnnTensor x, y;
  cudnn::ConvolutionCall call;
};

Model model_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "model.yaml");
  return read_model(YamlValue(node, ""));
}

}  // namespace

TEST_CASE("precision f32 takes an algorithm that was timed without tensor cores, with its own workspace",
          "[fake][search]") {
  Search f32(GpuPrecision::f32);
  const cudnn::TimedChoice plain = cudnn::fastest_forward(*f32.device, f32.call, f32.y.data());
  CHECK(plain.algorithm == fake::kDirect);
  CHECK(plain.math == CUDNN_FMA_MATH);
  CHECK(plain.workspace == fake::workspace_of(fake::kDirect, CUDNN_FMA_MATH));
  CHECK(plain.seconds == Approx(4e-3));
  CHECK(f32.device->clocks_are_high);
  Search tf32(GpuPrecision::tf32);
  CHECK(cudnn::fastest_forward(*tf32.device, tf32.call, tf32.y.data()).math == CUDNN_DEFAULT_MATH);
}

TEST_CASE("memory that is not aligned, and a workspace that is too small, are refused", "[fake][errors]") {
  Search f32(GpuPrecision::f32);
  cudnn::TimedChoice how = cudnn::fastest_forward(*f32.device, f32.call, f32.y.data());
  const CudnnTensor w(f32.device, {8, 4, 3, 3}, f32.device->element());
  const auto convolved = [&](std::size_t offset) {
    cudnn::convolve(*f32.device, f32.call, how, static_cast<const char*>(f32.x.data()) + offset, w.data(),
                    f32.y.data());
  };
  CHECK_NOTHROW(convolved(0));
  CHECK_THROWS_AS(convolved(4), cudnn::GpuError);
  how.workspace = 4096;  // what it takes with tensor cores
  CHECK_THROWS_AS(convolved(0), cudnn::GpuError);
}

TEST_CASE("a product's bias may start at any multiple of 64 bytes, as parameters do", "[fake]") {
  const auto device = std::make_shared<cudnn::Device>(GpuOptions{});
  const cudnn::Matmul product(device, {.a = {4, 8}, .b = {8, 16}, .c = {4, 16}, .bias = true});
  const CudnnTensor a(device, {4, 8}, device->element()), b(device, {8, 16}, device->element()),
      c(device, {4, 16}, device->element()), biases(device, {64}, device->element());
  const auto* bias = static_cast<const float*>(biases.data());
  CHECK_NOTHROW(product.run(a.data(), b.data(), c.data(), bias + 16));
  CHECK_THROWS_AS(product.run(a.data(), b.data(), c.data(), bias + 1), cudnn::GpuError);
}

TEST_CASE("a search without a result reports geometry, status, math type and workspace of every candidate",
          "[fake][search][errors]") {
  Search odd(GpuPrecision::bf16, 3);
  CHECK_FALSE(cudnn::is_supported(*odd.device, odd.call));
  CHECK_THROWS_WITH(
      cudnn::fastest_forward(*odd.device, odd.call, odd.y.data()),
      Catch::StartsWith(
          "cudnnFindConvolutionForwardAlgorithmEx: forward 2x3x6x6 to 2x8x3x3, filter 8x3x3x3, stride "
          "2x2, pad 1x1, order NHWC: in bf16 within 1 MiB of workspace none of 6 algorithms works; "
          "algorithm 0 (math 3): ") &&
          Catch::Contains("; algorithm 2 (math 3): ") && Catch::Contains(", 1048576.0 MiB") &&
          Catch::EndsWith("; graph API: 0 plans, of which 0 cannot run"));
}

TEST_CASE("a convolution that only the graph API takes computes by a plan that fits the workspace",
          "[fake][search]") {
  const auto pass = GENERATE(cudnn::ConvolutionPass::forward, cudnn::ConvolutionPass::backward_data,
                             cudnn::ConvolutionPass::backward_filter);
  Search odd(GpuPrecision::bf16, 3, 1);
  CHECK(cudnn::is_supported(*odd.device, odd.call));
  const CudnnTensor w(odd.device, {8, 3, 3, 3}, odd.device->element());
  const cudnn::FastestPlan found =
      cudnn::fastest_plan(*odd.device, odd.call.tensors, pass, {odd.x.data(), w.data(), odd.y.data()});
  REQUIRE(found.plan != nullptr);
  CHECK(found.plan->workspace() <= odd.device->workspace.bytes);
  CHECK_THAT(found.outcome, Catch::StartsWith("4 plans, of which 2 cannot run: a workspace of 1048576 MiB"));
  const cudnn::TimedChoice how = cudnn::fastest_forward(*odd.device, odd.call, odd.y.data());
  CHECK_THAT(cudnn::forward_name(how), Catch::StartsWith("forward ENGINE_1"));
}

TEST_CASE("where a plan runs, the algorithms of the older calls are timed in f32 alone", "[fake][search]") {
  const auto searches_for = [](GpuPrecision precision, std::int64_t stride) {
    Search one(precision, 4, stride);
    const int before = fake::searches();
    const cudnn::TimedChoice how = cudnn::fastest_forward(*one.device, one.call, one.y.data());
    CHECK((how.plan != nullptr || fake::searches() > before));
    CHECK(one.device->search_seconds > 0);
    return fake::searches() - before;
  };
  CHECK(searches_for(GpuPrecision::tf32, 1) == 0);
  CHECK(searches_for(GpuPrecision::bf16, 1) == 0);
  CHECK(searches_for(GpuPrecision::tf32, 2) == 2);  // no plan takes a stride of 2 here
  CHECK(searches_for(GpuPrecision::f32, 1) == 2);
}

TEST_CASE("precision f32 takes no engine on tensor cores, and none rounds inputs to 2 bytes",
          "[fake][search]") {
  const auto engines = [](GpuPrecision precision) {
    Search one(precision, 4, 1);
    return cudnn::engines_for(one.call.tensors, cudnn::ConvolutionPass::forward, precision,
                              cudnn::PlanTarget{one.device->dnn.get()})
        .size();
  };
  CHECK(engines(GpuPrecision::f32) == 3);
  CHECK(engines(GpuPrecision::tf32) == 4);  // with that on tensor cores
}

TEST_CASE("a convolution without an algorithm in NHWC computes in NCHW and says so", "[fake][search]") {
  const auto trace_of = [](GpuPrecision precision, int stride) {
    const Model model = model_of(fmt::format(R"(
name: odd
source: test
input: [3, 8, 8]
layers:
  - {{name: conv, kind: convolution, filters: 5, kernel: 3, pad: 1, stride: {}}}
  - {{name: even, kind: convolution, filters: 6, kernel: 1}}
  - {{name: flat, kind: reshape, shape: [{}]}}
  - {{name: classes, kind: dense, units: 4}}
  - {{name: loss, kind: softmax_cross_entropy}}
)",
                                             stride, 6 * (8 / stride) * (8 / stride)));
    return capture_on_gpu({.precision = precision, .layout = ImageLayout::nhwc}, model,
                          {.batch = 2, .steps = 3, .warm_up = 1})
        .layers[0]
        .notes;
  };
  CHECK_THAT(trace_of(GpuPrecision::bf16, 2), Catch::StartsWith("NCHW, because cuDNN has no algorithm"));
  CHECK_THAT(trace_of(GpuPrecision::f32, 2), !Catch::Contains("NCHW"));
  CHECK_THAT(trace_of(GpuPrecision::bf16, 1), !Catch::Contains("NCHW") && Catch::Contains("ENGINE_1"));
}

TEST_CASE("the tolerance is larger for algorithms that transform their inputs", "[fake][search]") {
  CHECK(allowance_of("forward IMPLICIT_PRECOMP_GEMM 12.3 MiB") == 1);
  CHECK(allowance_of("forward WINOGRAD_NONFUSED 12.3 MiB; backward data 1 0.0 MiB") == 10);
  CHECK(allowance_of("forward FFT_TILING 12.3 MiB") == 10);
}

TEST_CASE("a tensor of 2^31 elements is refused before any call", "[fake][errors]") {
  CHECK_THROWS_MATCHES(
      cudnn::describe(cudnn::Element::bf16, {16, 18, 2048, 3641}, cudnn::Order::channels_last), LimitError,
      Catch::Message("cuDNN's calls take tensors of less than 2^31 elements, and this one has 2147549184 "
                     "(16x18x2048x3641); take a smaller batch"));
  CHECK_NOTHROW(cudnn::describe(cudnn::Element::bf16, {1, 1, 32768, 65535}, cudnn::Order::row_major));
}

TEST_CASE("an image of one channel has the strides of the layout that its call has", "[fake]") {
  const auto device = std::make_shared<cudnn::Device>(GpuOptions{});
  const CudnnTensor plain(device, {2, 1, 4, 4}, cudnn::Element::f32);
  REQUIRE(plain.is_stored_as(cudnn::Order::channels_last));
  CHECK(plain.under(cudnn::Order::channels_last).strides() == std::vector<std::int64_t>{16, 1, 4, 1});
}

}  // namespace stepcast::test
