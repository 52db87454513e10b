#include <catch2/catch.hpp>
#include <string>

#include "models/pytorch_profile/profile.hpp"
#include "tests/models/pytorch_profile/made_up_profile.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

double first_us(const PassSamples& pass) {
  return pass.seconds.empty() ? 0 : 1e6 * pass.seconds.front();
}

const double kOwn = 10;  // of each pass of a layer [us], as `steps` makes them

void check_own_times(const Trace& trace) {
  REQUIRE(trace.layers.size() == 3);
  for (const LayerTrace& layer : trace.layers) CHECK(first_us(layer.forward) == Approx(kOwn));
  CHECK(first_us(trace.layers[1].backward_data) == Approx(kOwn));
}

void check_region(const ImportedSteps& read, double forward) {
  REQUIRE(read.trace.layers.size() == 3);
  CHECK(read.all.steps[0].operators[1].region);
  CHECK(first_us(read.trace.layers[1].forward) == Approx(forward));
  CHECK(first_us(read.trace.layers[1].backward_data) == Approx(kOwn));
}

}  // namespace

TEST_CASE("layers that a node of the backward pass runs again are no layer's time", "[models]") {
  // As PyTorch 1.13 writes torch.utils.checkpoint(use_reentrant=False): inside the first node that needs
  // them.
  const ImportedSteps read = imported_steps(steps([](Events& events, double t) {
    events.kernel("sgemm", events.host("aten::linear", t + 231, 2, 77, false, "[[2,4],[4,4],[4]]"), t + 232,
                  30);
    events.kernel("clamp", events.host("aten::relu", t + 234, 2, 78, false, "[[2,4]]"), t + 235, 10);
  }));
  check_own_times(read.trace);
  CHECK(1e6 * read.all.steps[0].non_layer_seconds.at(NonLayerWork::recomputed) == Approx(40));
  CHECK(has_flag(read.trace, "computes activations again (0.04 ms a step, left out): set `recompute: true`"));
  CHECK(1e6 * read.all.steps[0].operators[1].times.host_backward == Approx(20 - 4));
}

TEST_CASE("layers in a node that are no run of the forward pass are refused", "[models][errors]") {
  const auto in_node = [](const std::string& name, int sequence, const std::string& shapes) {
    return refusal_of_steps(steps([&](Events& events, double t) {
      events.kernel("sgemm", events.host(name, t + 231, 2, sequence, false, shapes), t + 232, 30);
    }));
  };
  CHECK_THAT(in_node("aten::linear", 77, "[[2,4],[8,4],[8]]"),
             Contains("but not layers of the step's forward pass in their order"));
  CHECK_THAT(in_node("aten::linear", -1, "[[2,4],[4,4],[4]]"), Contains("has no numbers that tell what"));
  CHECK_THAT(in_node("CheckpointFunctionBackward", 77, ""), Contains("use_reentrant=False"));
}

TEST_CASE("FSDP's gathers, copies and scatters are left out, and its passes are the layers'", "[models]") {
  const auto gather = [](Events& events, const std::string& range, double at) {
    events.range(range, at, 8);
    events.kernel("copy", events.host("fsdp::split_with_sizes_copy", at + 1, 2), at + 2, 5);
    events.kernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                  events.host("c10d::_allgather_base_", at + 4, 2), at + 5, 40);
  };
  for (const std::string prefix : {"FSDP::", "FullyShardedDataParallel._"}) {
    const ImportedSteps read = imported_steps(steps([&](Events& events, double t) {
      gather(events, prefix + "pre_forward", t + 30);
      gather(events, prefix + "pre_backward_hook", t + 220);
    }));
    check_own_times(read.trace);
    CHECK(1e6 * read.all.steps[0].non_layer_seconds.at(NonLayerWork::sharding) == Approx(10));
    CHECK(has_flag(read.trace, "the job shards its parameters (FSDP; 0.01 ms of copies a step"));
    CHECK(has_flag(read.trace, "collectives of the profile (6 all_gather) are left out"));
  }
}

TEST_CASE("views of FSDP's flat parameter are no layers, nor is the gradient that they gather", "[models]") {
  const ImportedSteps read = imported_steps(steps([](Events& events, double t) {
    events.range("FullyShardedDataParallel._pre_forward", t + 1, 6);
    events.host("aten::split_with_sizes", t + 2, 2, 5);
    events.kernel("cat", events.host("SplitWithSizesBackward0", t + 300, 8, 5, true), t + 301, 25);
  }));
  check_own_times(read.trace);
  CHECK(1e6 * read.all.steps[0].non_layer_seconds.at(NonLayerWork::sharding) == Approx(25));
}

TEST_CASE("the scaler of mixed precision belongs to the loss and the update", "[models]") {
  const ImportedSteps read = imported_steps(steps([](Events& events, double t) {
    events.kernel("mul", events.host("aten::mul", t + 100, 4, t, false, "[[],[]]"), t + 101, 2);
    events.kernel("mul", events.host("MulBackward0", t + 200, 4, t, true, "[[]]"), t + 201, 3);
    events.kernel("amp", events.host("aten::_amp_foreach_non_finite_check_and_unscale_", t + 320, 8), t + 321,
                  7);
    events.kernel("amp", events.host("aten::_amp_update_scale_", t + 340, 8), t + 341, 1);
  }));
  REQUIRE(read.model.layers.size() == 3);
  CHECK(read.model.layers.back().kind == LayerKind::mean_squared_error);
  CHECK(first_us(read.trace.layers.back().forward) == Approx(kOwn + 2));
  CHECK(first_us(read.trace.layers.back().backward_data) == Approx(kOwn + 3));
  CHECK(1e6 * read.all.steps[0].non_layer_seconds.at(NonLayerWork::optimizer) == Approx(8));
}

TEST_CASE("a region of torch.compile and a CUDA graph of an operator are one measured layer", "[models]") {
  for (const bool graph : {false, true}) {
    const auto with_names = [&](const std::string& text) {
      return graph ? text
                   : with_words(with_words(text, "aten::relu", "CompiledFunction"), "ReluBackward0",
                                "CompiledFunctionBackward");
    };
    const ImportedSteps read = imported_steps(with_names(steps([&](Events& events, double t) {
      events.range("Torch-Compiled Region: 0/0", t + 49, 10);
      if (graph) events.kernel("fused", 0, t + 52, 30, 0, "cudaGraphLaunch");
    })));
    check_region(read, graph ? kOwn + 30 : kOwn);
  }
}

TEST_CASE("the host's time of a layer ends where the next one begins, without its waits", "[models]") {
  const std::string text = steps([](Events& events, double t) {
    events.launch("cudaStreamSynchronize", t + 60, 25);
    events.range("Optimizer.step#SGD.step", t + 400, 50);
    events.launch("cudaLaunchKernel", t + 410, 22);  // the queue is full: 1 us is usual
  });
  CHECK(imported_steps(text).trace.layers[0].host.forward == 0);
  const double scale = 0.5;  // 250 us a step without the profiler, 500 with it
  const Trace trace = imported_steps(text, 250e-6).trace;
  CHECK(1e6 * trace.layers[0].host.forward == Approx(scale * 40));
  CHECK(1e6 * trace.layers[1].host.forward == Approx(scale * (40 - 25)));
  CHECK(1e6 * trace.layers[2].host.forward == Approx(scale * 8));
  CHECK(1e6 * trace.layers[1].host.backward == Approx(scale * 20));
  CHECK(1e6 * trace.layers[0].host.update == Approx(scale * (50 - 20)));
  CHECK_THAT(trace.notes.back(),
             Contains("where a step took 0.5 ms, scaled to a step of 0.25 ms without it"));
}
