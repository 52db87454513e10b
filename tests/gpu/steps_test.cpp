#include <catch2/catch.hpp>

#include "gpu_or_skip.hpp"
#include "kernels/network/network.hpp"
#include "models/layer_times/trace.hpp"
#include "networks.hpp"

using namespace stepcast;
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
