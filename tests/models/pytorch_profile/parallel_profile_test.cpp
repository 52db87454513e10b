#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "models/pytorch_profile/profile.hpp"
#include "tests/models/pytorch_profile/made_up_profile.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

/// A collective of NCCL that takes 40 us.
void add_collective(Events& events, const std::string& name, double at) {
  events.kernel("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
                events.host("c10d::" + name, at, 6), at + 1, 40);
}

}  // namespace

TEST_CASE("a collective between layers is refused with its number, kind and groups", "[models][errors]") {
  const std::string mesh =
      R"("distributedInfo":{"pg_config":[{"pg_name":"1","pg_desc":"mesh_tp","pg_size":4,"ranks":[0,1,2,3]}]},"traceEvents")";
  const std::string tensor =
      steps([](Events& events, double t) { add_collective(events, "allreduce_", t + 30); });
  CHECK_THAT(
      refusal_of_steps(with_words(tensor, "\"traceEvents\"", mesh)),
      Contains(
          "runs collectives that are no sums of gradients (3 all_reduce in the forward pass in 3 steps; its "
          "groups: mesh_tp of 4 ranks)"));
  const auto in = [](double at, const std::string& name) {
    return refusal_of_steps(steps([&](Events& events, double t) { add_collective(events, name, t + at); }));
  };
  CHECK_THAT(in(70, "alltoall_base_"), Contains("3 all_to_all in the forward pass"));
  CHECK_THAT(in(240, "_reduce_scatter_base_"), Contains("3 reduce_scatter in the backward pass"));
  CHECK_THAT(in(252, "allreduce_"), Contains("3 all_reduce in the backward pass"));  // in a layer's node
  CHECK_THAT(in(70, "recv_"), Contains("3 send or receive in the forward pass"));
  // Sharded tables exchange their vectors before the first layer that is known, or after the last.
  CHECK_THAT(in(2, "alltoall_base_"), Contains("(3 all_to_all outside the passes in 3 steps"));
  CHECK_THAT(in(320, "alltoall_base_"), Contains("(3 all_to_all outside the passes in 3 steps"));
}

TEST_CASE("kernels of other libraries that exchange data are no layer's time", "[models][errors]") {
  const auto refused = [](const std::string& kernel) {
    return refusal_of_steps(steps([&](Events& events, double t) { events.kernel(kernel, 0, t + 30, 40); }));
  };
  CHECK_THAT(refused("void vllm::cross_device_reduce_1stage<float, 8>(vllm::RankData*)"),
             Contains("3 all_reduce in the forward pass"));
  CHECK_THAT(refused("one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>"),
             Contains("3 all_reduce in the forward pass"));
  CHECK_THAT(refused("void deep_ep::intranode::dispatch<8, 768>(int4*)"),
             Contains("3 all_to_all in the forward pass"));
}

TEST_CASE("a kernel of NCCL between layers is found without its operator", "[models][errors]") {
  CHECK_THAT(refusal_of_steps(steps([](Events& events, double t) {
               events.kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", 0, t + 30, 40);
             })),
             Contains("3 all_reduce in the forward pass"));
}

TEST_CASE("sums of gradients and collectives outside the passes are left out by name", "[models]") {
  const auto flagged = [](double at, const std::string& name, const std::string& count) {
    const Trace trace =
        imported_steps(steps([&](Events& events, double t) { add_collective(events, name, t + at); })).trace;
    CHECK(has_flag(trace, "collectives of the profile (" + count + ") are left out"));
  };
  flagged(271, "allreduce_", "3 all_reduce");  // a hook of DDP
  flagged(240, "allreduce_", "3 all_reduce");
  flagged(320, "_allgather_base_", "3 all_gather");  // of a sharded optimizer
  flagged(2, "broadcast_", "3 broadcast");           // DDP's buffers
}

TEST_CASE("copies from the host between layers are no layer's time, and are named", "[models]") {
  const ImportedSteps read = imported_steps(steps([](Events& events, double t) {
    events.copy_from_host(events.host("aten::to", t + 70, 8), t + 71, 60);
    events.kernel("fill", events.host("aten::full", t + 80, 6), t + 81, 20);
  }));
  CHECK(1e6 * read.trace.layers[2].forward.seconds[0] == Approx(10));
  CHECK(1e6 * read.all.steps[0].non_layer_seconds.at(NonLayerWork::input) == Approx(80));
  CHECK(read.all.left_out_text() == "57.1 % (aten::to 42.9 %, aten::full 14.3 %)");
  CHECK(has_note(read.trace, "left out of the layers: 57.1 % (aten::to 42.9 %, aten::full 14.3 %)"));
  CHECK(has_note(imported_steps(steps([](Events&, double) {})).trace, "left out of the layers: nothing"));
}

TEST_CASE("a backward pass may be that of the step before", "[models]") {
  Events events;
  for (int step = 1; step <= 4; ++step) {
    const double t = 1000.0 * step;
    events.range("ProfilerStep#" + std::to_string(step), t, 500);
    add_forward(events, t, 10 * step);
    add_backward(events, t, 10 * (step - 1));
  }
  const ImportedSteps read = imported_steps(events.text());
  REQUIRE(read.all.steps.size() == 3);  // the backward pass of the last one is not in the profile
  CHECK(read.all.attributed() == 1);
  CHECK(read.trace.layers.size() == 3);
  for (const double seconds : read.trace.layers[1].backward_data.seconds) CHECK(1e6 * seconds == Approx(10));
}

TEST_CASE("a stage without a loss ends with a measured layer", "[models]") {
  const ImportedSteps read =
      imported_steps(with_words(with_words(steps([](Events&, double) {}), "aten::mse_loss", "aten::sigmoid"),
                                "MseLossBackward0", "SigmoidBackward0"));
  CHECK(read.model.layers.back().kind == LayerKind::measured);
}

TEST_CASE("a profile without steps has those that end with the optimizer", "[models]") {
  const std::string text = steps([](Events& events, double t) {
    events.range("Optimizer.step#SGD.step", t + 400, 50);
    events.kernel("sgd", events.host("aten::_foreach_add_", t + 410, 8), t + 411, 5);
  });
  const ImportedSteps read = imported_steps(with_words(text, "ProfilerStep#", "train "));
  REQUIRE(read.all.steps.size() == 3);
  CHECK(1e6 * read.all.steps[1].non_layer_seconds.at(NonLayerWork::optimizer) == Approx(5));
  CHECK(has_flag(read.trace, "optimizer"));
}

TEST_CASE("an optimizer that did not run has no flag, and a disturbed profile has one", "[models]") {
  const Trace plain = imported_steps(steps([](Events&, double) {})).trace;
  CHECK(plain.flags.empty());
  const Trace disturbed = imported_steps(steps([](Events& events, double t) {
                            if (t > 2500) events.kernel("again", 1, t + 12, 500);
                          })).trace;
  CHECK(has_flag(disturbed, "the profile is disturbed: the layers of a step take from 0.06 to 0.56 ms"));
}

TEST_CASE("words that JSON does not have pass where nobody reads them", "[models]") {
  const std::string text = steps([](Events&, double) {});
  for (const std::string word : {"inf", "-inf", "NaN", "nan", "N/A", "-Infinity"}) {
    CHECK(refusal_of_steps(with_words(text, "\"device\":0", "\"device\":0,\"bandwidth (GB/s)\":" + word))
              .empty());
    CHECK_THAT(refusal_of_steps(with_words(text, "\"dur\":8.000000", "\"dur\":" + word)),
               Contains("expected a time in us of the event aten::linear, got no number"));
  }
  CHECK_THAT(refusal_of_steps(with_words(text, "\"device\":0", "\"device\":foo")),
             Contains("is not complete JSON"));
}

TEST_CASE("an addition reads both inputs in the shape that the profile records", "[models]") {
  Events events;
  for (int step = 1; step <= 2; ++step) {
    const double t = 1000.0 * step;
    const int s = 10 * step;
    events.range("ProfilerStep#" + std::to_string(step), t, 500);
    events.kernel("a", events.host("aten::relu", t + 10, 8, s, false, "[[2,4,9]]"), t + 11, 10);
    events.kernel("b", events.host("aten::linear", t + 20, 8, s + 1, false, "[[2,4,9],[9,9],[9]]"), t + 21,
                  10);
    events.kernel("c", events.host("aten::add", t + 30, 8, s + 2, false, "[[2,4,3,3],[2,4,3,3],[]]"), t + 31,
                  10);
    events.kernel("d", events.host("aten::mse_loss", t + 40, 8, s + 3, false, "[[2,4,3,3],[2,4,3,3],[]]"),
                  t + 41, 10);
    const std::vector<std::string> nodes{"ReluBackward0", "AddmmBackward0", "AddBackward0",
                                         "MseLossBackward0"};
    const std::vector<std::string> outputs{"[[2,4,9]]", "[[8,9]]", "[[2,4,3,3]]", "[[]]"};
    for (int i = 3; i >= 0; --i) {
      const double at = t + 200 - 20 * i;
      const int id = events.host(nodes[i], at, 8, s + i, true, outputs[i]);
      events.kernel("e", id, at + 1, 10);
      if (i == 1) events.host("torch::autograd::AccumulateGrad", at + 10, 4, -1, false, "[[9]]");
      if (i == 1) events.host("torch::autograd::AccumulateGrad", at + 15, 4, -1, false, "[[9,9]]");
    }
  }
  const Model model = imported_steps(events.text()).model;
  const auto add = std::find_if(model.layers.begin(), model.layers.end(),
                                [](const Layer& layer) { return layer.kind == LayerKind::add; });
  REQUIRE(add != model.layers.end());
  CHECK(add->output == Shape{4, 3, 3});
}

TEST_CASE("products and copies of ROCm are those of CUDA", "[models]") {
  const std::string text =
      with_words(with_words(steps([](Events& events, double t) {
                              events.copy_from_host(events.host("aten::to", t + 70, 8), t + 71, 60);
                            }),
                            "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice"),
                 "sgemm", "Cijk_Alik_Bljk_BBS_BH_MT128x128x32");
  const ImportedSteps read = imported_steps(text);
  CHECK(read.trace.precision == "bf16");
  CHECK(1e6 * read.all.steps[0].non_layer_seconds.at(NonLayerWork::input) == Approx(60));
}
