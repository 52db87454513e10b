#include <catch2/catch.hpp>

#include "scenarios/experiment/experiment.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

/// The kernels of a point with these values of `model`, `platform` and `strategy`, and further keys.
KernelChoice choice_of(const std::string& model, const std::string& platform,
                       const std::string& strategy = "{kind: synchronous}", const std::string& more = "") {
  const Scenario scenario =
      scenario_of("name: t\nmodel: " + model + "\ntrace: derived\nplatform: " + platform + "\nworkers: 8\n" +
                  "batch_per_worker: 1\nstrategy: " + strategy + "\n" + more);
  Library library;
  return build_experiment(scenario.document, {}, library).device.choice();
}

}  // namespace

TEST_CASE("a transformer on tensor cores is trained in half precision by default", "[scenarios]") {
  using Precision = KernelChoice::Precision;
  using Attention = KernelChoice::Attention;
  const KernelChoice h100 = choice_of("gpt2-small", "dgx-h100-pod");
  CHECK(h100.precision == Precision::bf16);
  CHECK(h100.attention == Attention::flash);
  CHECK(h100.optimizer == KernelChoice::UpdateRule::adamw);
  CHECK(choice_of("gpt2-small", "dgx1v").precision ==
        Precision::f16);  // which has neither bf16 nor flash kernels
  CHECK(choice_of("gpt2-small", "dgx-h100-pod", "{kind: synchronous, like: pytorch-ddp}") == h100);
  CHECK(choice_of("gpt2-small", "dgx1v").attention == Attention::eager);
}

TEST_CASE("replicas of a transformer are trained under autocast, a mesh and other stacks are not",
          "[scenarios]") {
  const auto autocast = [](const std::string& strategy) {
    return choice_of("gpt2-small", "dgx-h100-pod", strategy).autocast;
  };
  CHECK(autocast("{kind: synchronous}"));
  CHECK(autocast("{kind: synchronous, fp32_gradients: false}"));
  CHECK_FALSE(autocast("{kind: synchronous, shard: optimizer}"));
  CHECK_FALSE(autocast("{kind: synchronous, like: megatron}"));
  CHECK_FALSE(autocast("{kind: zero, stage: 1}"));
}

TEST_CASE("gradients of autocast have 4 bytes in messages", "[scenarios]") {
  const auto gradients = [](const std::string& strategy) {
    const Scenario scenario = scenario_of(
        "name: t\nmodel: gpt2-small\ntrace: derived\nplatform: dgx-h100-pod\nworkers: 8\n"
        "batch_per_worker: 1\nstrategy: " +
        strategy);
    Library library;
    double bytes = 0;
    for (const Bucket& bucket : build_experiment(scenario.document, {}, library).plan.workloads.at(0).buckets)
      bytes += bucket.gradient.value;
    return bytes;
  };
  const double half = gradients("{kind: synchronous, fp32_gradients: false}");
  CHECK(gradients("{kind: synchronous}") == 2 * half);
  CHECK(gradients("{kind: synchronous, precision: f32}") == 2 * half);
  CHECK(gradients("{kind: synchronous, like: pytorch-ddp, precision: mixed}") == 2 * half);
}

TEST_CASE("one key of kernels leaves the others as they are by default", "[scenarios]") {
  KernelChoice usual = choice_of("gpt2-small", "dgx-h100-pod");
  usual.update = KernelChoice::Update::fused;
  CHECK(choice_of("gpt2-small", "dgx-h100-pod", "{kind: synchronous}", "kernels: {update: fused}\n") ==
        usual);
  CHECK(choice_of("resnet50", "dgx-h100-pod", "{kind: synchronous}", "kernels: {layout: nhwc}\n").precision ==
        KernelChoice::Precision::tf32);
}

TEST_CASE("mixed precision computes in half precision, where the device has it", "[scenarios]") {
  const std::string mixed = "{kind: synchronous, precision: mixed}";
  CHECK(choice_of("gpt2-small", "dgx-h100-pod", mixed) == choice_of("gpt2-small", "dgx-h100-pod"));
  CHECK(choice_of("resnet50", "dgx-h100-pod", mixed).precision == KernelChoice::Precision::f16);
  CHECK(choice_of("resnet50", "dgx1-p100", mixed) == KernelChoice{});  // without tensor cores
}

TEST_CASE("other networks compute in TF32 by default, where the device has it", "[scenarios]") {
  CHECK(choice_of("resnet50", "dgx-h100-pod").precision == KernelChoice::Precision::tf32);
}

TEST_CASE("what a scenario names of its precision, and other networks, keep the plain default",
          "[scenarios]") {
  const KernelChoice plain;
  CHECK(choice_of("resnet50", "dgx1v") == plain);
  CHECK(choice_of("gpt2-small", "dgx1-p100") == plain);  // without tensor cores
  CHECK(choice_of("gpt2-small", "dgx-h100-pod", "{kind: synchronous, precision: f32}") == plain);
  const KernelChoice named =
      choice_of("gpt2-small", "dgx-h100-pod", "{kind: synchronous}", "kernels: {precision: tf32}\n");
  CHECK(named.precision == KernelChoice::Precision::tf32);
  CHECK(named.attention == KernelChoice::Attention::eager);
}

TEST_CASE("a run that measures its own times keeps the plain kernels", "[scenarios]") {
  const Scenario scenario = scenario_of(
      "name: t\nmodel: gpt2-small\ntrace: derived\nplatform: dgx-h100-pod\nworkers: 8\nbatch_per_worker: 1\n"
      "strategy: {kind: tensor, ways: 2}\n");
  Library library;
  const Experiment measured = build_experiment(scenario.document, {}, library, Overrides{.trace = "derived"});
  CHECK(measured.device.choice() == KernelChoice{});
  CHECK(measured.plan.partition.simulated_only == "");
}
