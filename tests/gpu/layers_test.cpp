#include <catch2/catch.hpp>

#include "check/cases.hpp"
#include "gpu/check/check_layers.hpp"
#include "gpu_or_skip.hpp"
#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/cuda/optimizer_updates.hpp"
#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"
#include "kernels/network/network.hpp"
#include "models/layer_times/trace.hpp"
#include "networks.hpp"
#include "strategies/arithmetic/compressed_values.hpp"

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

using namespace stepcast::test;

namespace {

/// Arrays on the device, uploaded and read back.
struct OnDevice {
  std::shared_ptr<cudnn::Device> device = std::make_shared<cudnn::Device>(GpuOptions{});
  std::vector<std::shared_ptr<void>> memory;

  float* upload(const std::vector<float>& values) {
    memory.push_back(cudnn::allocate_bytes(values.size() * sizeof(float), device->stream.get()));
    cudnn::upload(values, static_cast<float*>(memory.back().get()), device->stream.get());
    return static_cast<float*>(memory.back().get());
  }
  std::vector<float> download(const float* from, std::size_t elements) {
    return cudnn::download(from, elements, device->stream.get());
  }
};

void check_near(const std::vector<float>& found, const std::vector<float>& expected, double margin) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(margin));
}

}  // namespace

TEST_CASE("every optimizer's kernel follows the CPU's over several steps", "[gpu]") {
  if (!gpu_or_skip()) return;
  const auto kind = GENERATE(Optimizer::Kind::sgd, Optimizer::Kind::adagrad, Optimizer::Kind::rmsprop,
                             Optimizer::Kind::adam);
  const Optimizer optimizer{
      .kind = kind, .learning_rate = 0.05, .momentum = GENERATE(0.0, 0.9), .decay = 0.99};
  OnDevice gpu;
  std::vector<float> value = as_floats(uniform_array(1037, 1)), first(1037), second(1037);
  float* device_value = gpu.upload(value);
  float *device_first = gpu.upload(first), *device_second = gpu.upload(second);
  for (std::uint32_t step = 1; step <= 5; ++step) {
    const std::vector<float> gradient = as_floats(uniform_array(1037, 10 + step));
    constexpr float kScale = 0.25F;  // scale of a sum over four workers
    update_on_cpu(optimizer,
                  {value.data(), gradient.data(), {first.data(), second.data()}, 1037, step, kScale});
    cudnn::update(optimizer,
                  {device_value, gpu.upload(gradient), {device_first, device_second}, 1037, step, kScale},
                  gpu.device->stream.get());
  }
  check_near(gpu.download(device_value, 1037), value, 1e-5);
}

TEST_CASE("sums start at any element of an array", "[gpu]") {
  if (!gpu_or_skip()) return;
  const std::vector<float> terms = as_floats(uniform_array(1037, 1)),
                           other = as_floats(uniform_array(1037, 2));
  OnDevice gpu;
  const float* from = gpu.upload(terms);
  for (const std::size_t offset : {0, 1, 2, 3, 4}) {
    float* to = gpu.upload(other);
    cudnn::sum({to + offset, from + 1}, to + offset, cudnn::Element::f32, 1000, gpu.device->stream.get());
    std::vector<float> expected = other;
    for (std::size_t i = 0; i < 1000; ++i) expected[offset + i] += terms[i + 1];
    check_near(gpu.download(to, 1037), expected, 0);
  }
}

TEST_CASE("one-bit and fp16 compression send what the CPU's do and keep the same residuals", "[gpu]") {
  if (!gpu_or_skip()) return;
  constexpr std::size_t kElements = 1000,
                        kRows = 300;  // the last column is shorter, and no column fills its words
  const std::vector<float> gradient = as_floats(uniform_array(kElements, 1));
  std::vector<float> residual = as_floats(uniform_array(kElements, 2)), restored(kElements);
  OnDevice gpu;
  float *device_gradient = gpu.upload(gradient), *device_residual = gpu.upload(residual),
        *back = gpu.upload(restored);
  const std::vector<float> words(4 * 10), columns(4);
  const cudnn::OneBitArrays sent{reinterpret_cast<std::uint32_t*>(gpu.upload(words)), gpu.upload(columns),
                                 gpu.upload(columns)};
  const cudaStream_t stream = gpu.device->stream.get();

  OneBitGradient bits;
  quantize_one_bit(gradient, kRows, residual, bits);
  restore_one_bit(bits, restored);
  cudnn::quantize_one_bit(device_gradient, kElements, kRows, device_residual, sent, stream);
  cudnn::restore_one_bit(sent, kElements, kRows, back, stream);
  check_near(gpu.download(back, kElements), restored, 1e-6);
  check_near(gpu.download(device_residual, kElements), residual, 1e-6);

  std::vector<std::uint16_t> halves(kElements);
  to_halves_with_feedback(gradient, residual, halves);
  from_halves(halves, restored);
  auto* device_halves = reinterpret_cast<std::uint16_t*>(gpu.upload(std::vector<float>(kElements / 2)));
  cudnn::to_halves_with_feedback(device_gradient, device_residual, device_halves, kElements, stream);
  cudnn::from_halves(device_halves, back, kElements, stream);
  check_near(gpu.download(back, kElements), restored,
             2e-3);  // one unit of fp16, for sums that differ in one bit
}

TEST_CASE("a box of elements is packed and unpacked as a halo is", "[gpu]") {
  if (!gpu_or_skip()) return;
  OnDevice gpu;
  std::vector<float> image(2 * 5 * 7);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = i;
  const float* from = gpu.upload(image);
  float* packed = gpu.upload(std::vector<float>(2 * 2 * 7));
  // Rows 3 and 4 of both planes.
  const cudnn::Move rows{.size = {1, 1, 2, 2, 7},
                         .from_stride = {0, 0, 35, 7, 1},
                         .to_stride = {0, 0, 14, 7, 1},
                         .from_offset = 21};
  cudnn::move_elements(rows, from, packed, gpu.device->stream.get());
  const std::vector<float> found = gpu.download(packed, 28);
  CHECK(found.front() == 21);
  CHECK(found.at(13) == 34);
  CHECK(found.at(14) == 56);
  CHECK(found.back() == 69);
}

using namespace stepcast::test;

TEST_CASE("training on a separable task brings the loss near zero at every precision", "[gpu]") {
  if (!gpu_or_skip()) return;
  const auto precision =
      GENERATE(GpuPrecision::f32, GpuPrecision::tf32, GpuPrecision::f16, GpuPrecision::bf16);
  const auto backend = make_cudnn_backend({.precision = precision});
  check_learns_plane(*backend, {.learning_rate = 0.1});
}

TEST_CASE("a capture on a GPU has every pass, whole steps and steps as a CUDA graph", "[gpu]") {
  if (!gpu_or_skip()) return;
  CaptureOptions options;
  options.name = "residual-b4-f32-nchw-gpu";
  options.batch = 4;
  options.steps = 5;
  const Trace trace = capture_on_gpu({}, residual_model(), options);
  REQUIRE(trace.layers.size() == 9);
  for (const std::size_t convolution : {0, 2}) {
    CHECK(trace.layers[convolution].forward.seconds.size() == 5);
    CHECK(trace.layers[convolution].backward_weights.seconds.size() == 5);
    CHECK_THAT(trace.layers[convolution].notes, Catch::Contains("forward ") && Catch::Contains(" MiB"));
  }
  CHECK(trace.layers[0].backward_data.seconds.empty());  // its input is the network's input
  CHECK(trace.step_seconds.size() == 5);
  CHECK(trace.graph_step_seconds.size() == 5);
  CHECK(step_time(trace).value > 0);
}

TEST_CASE("passes that are replayed as graphs train like single launches, to rounding", "[gpu]") {
  if (!gpu_or_skip()) return;
  std::vector<double> losses;
  for (const bool graphs : {false, true}) {
    const auto backend = make_cudnn_backend({.graphs = graphs});
    Network network(*backend, two_layer_model(4), {.batch = 64, .optimizer = {.learning_rate = 0.1}});
    const std::size_t layers = network.model().layers.size();
    for (int step = 0; step < 20; ++step) {
      network.run_forward(0, layers);
      network.run_backward(0, layers);
      network.begin_update();
      network.update_layers(0, layers);
    }
    CHECK(network.has_recordings() == graphs);
    losses.push_back(network.loss());
  }
  CHECK(losses[1] == Approx(losses[0]).epsilon(1e-4));  // sums of gradients have no fixed order
}
