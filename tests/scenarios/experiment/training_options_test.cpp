#include <catch2/catch.hpp>

#include "scenario_text.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

Experiment quick(const std::vector<std::string>& settings) {
  std::vector<std::string> all{"workers=16"};
  all.insert(all.end(), settings.begin(), settings.end());
  return shipped_experiment("resnet50-ethernet-cpu", all);
}

void refused(const std::string& setting, const std::string& message) {
  CHECK_THROWS_WITH(quick({setting}), "--set " + setting + ": " + message);
}

}  // namespace

TEST_CASE("faults follow from the nodes of the plan, the size of the state and the storage", "[scenarios]") {
  const Experiment one =
      quick({"faults={node_mtbf: 1000 h, repair: 5 min, restart: 30 s, checkpoint: "
             "{interval: 10 min, bandwidth: 1 GB/s}, slow: {share: 0.1, factor: 2}}"});
  REQUIRE(one.faults);
  const Faults& faults = one.faults->faults;
  CHECK(faults.nodes == nodes_of(one.plan, one.platform));
  CHECK(faults.nodes == 16);  // ethernet-cpu has one device a node
  CHECK(faults.node_mtbf.value == 3.6e6);
  CHECK(faults.repair.value == 300);
  CHECK(faults.restart.value == 30);
  CHECK(faults.response == FailureResponse::restart);
  CHECK(faults.checkpoints.interval.value == 600);
  const Memory& memory = one.plan.memory;
  CHECK(faults.checkpoints.write.value == (memory.weights + memory.optimizer_state).value / 1e9);
  CHECK(faults.slow.every.value == 0);
  CHECK(quick({"faults={answer: shrink}"}).faults->faults.response == FailureResponse::shrink);
}

TEST_CASE("failures hit nodes or devices", "[scenarios]") {
  const auto faults = [](const std::string& key) {
    return quick({"platform=lassen", "faults={" + key + ": 100 h}"}).faults->faults;
  };
  CHECK(faults("node_mtbf").nodes == 4);  // 16 workers, four devices a node
  CHECK(faults("device_mtbf").nodes == 16);
  CHECK(faults("device_mtbf").node_mtbf.value == 3.6e5);
  refused("faults={node_mtbf: 1 h, device_mtbf: 1 h}",
          "faults.device_mtbf: expected either node_mtbf or device_mtbf, got both");
}

TEST_CASE("without a bandwidth checkpoints go to the platform's storage, from one node", "[scenarios]") {
  const Experiment one = quick({"faults={checkpoint: {interval: best, size: 1 GB}}"});
  CHECK(one.faults->best_interval);
  const Storage& storage = one.platform.storage;
  CHECK(one.faults->faults.checkpoints.write.value ==
        Approx(1e9 / std::min(storage.bandwidth.value, storage.per_node.value)));
}

TEST_CASE("asynchronous and block training shrinks, other training restarts", "[scenarios]") {
  Plan plan;
  CHECK(default_response(plan, "synchronous") == FailureResponse::restart);
  CHECK(default_response(plan, "bmuf") == FailureResponse::shrink);
  plan.asynchronous = true;
  CHECK(default_response(plan, "anything") == FailureResponse::shrink);
}

TEST_CASE("dead links cut off the nodes that no route reaches, and slow ones none", "[scenarios]") {
  const auto cut_off = [](const std::string& link, const std::string& workers = "workers=64") {
    const Experiment one =
        quick({workers, "faults={steps: 9, links: [{" + link + ", at: 1 s, lasts: 1 s}]}"});
    REQUIRE(one.faults->links.size() == 1);
    return one.faults->faults.links.at(0).cut_off;
  };
  CHECK(cut_off("node: 3") == 1);
  CHECK(cut_off("node: 0") == 1);
  CHECK(cut_off("node: 3, share: 0.1") == 0);
  CHECK(cut_off("node: 100") == 0);               // it holds no rank
  CHECK(cut_off("links: node 3 NIC 0 up") == 1);  // one direction suffices
  CHECK(cut_off("links: 'node [0-9] NIC 0 *'") == 10);
  CHECK(cut_off("links: leaf 0 -> spine 0") == 0);                // three more cables lead up
  CHECK(cut_off("links: leaf 1 -> spine *") == 32);               // the second rack of two
  CHECK(cut_off("links: leaf 1 -> spine *", "workers=40") == 8);  // the smaller part
  CHECK(cut_off("links: leaf 0 -> spine *", "workers=40") == 8);
}

TEST_CASE("a campaign takes the devices of the plan for each training", "[scenarios]") {
  const Experiment one =
      quick({"campaign={points: 50, groups: 4, folds: 5, folds_at_once: 3, point_spread: 0.3, "
             "early_stopping: {share: 0.5, after: 0.2}}"});
  REQUIRE(one.campaign);
  const Campaign& campaign = one.campaign->campaign;
  CHECK(campaign.training_devices == 16);
  CHECK(campaign_devices(campaign) == 1 + 4 * 3 * 16);
  CHECK(campaign.stopped_share == 0.5);
  CHECK(campaign.cost.cubic.value > 0);
  const Campaign evolution = quick({"campaign={points: 50, groups: 2, optimizer: {by: evolution, generation: "
                                    "10, count: 2, history: own}}"})
                                 .campaign->campaign;
  CHECK(evolution.cost.cubic.value == 0);
  CHECK(evolution.generation == 10);
  CHECK(evolution.optimizers == 2);
  CHECK_FALSE(evolution.shared_history);
}

TEST_CASE("invalid faults and campaigns are refused at their place", "[scenarios][errors]") {
  refused(
      "faults={answer: shrnik}",
      "faults.answer: expected one of restart, shrink, automatic, got \"shrnik\"; did you mean \"shrink\"?");
  refused("faults={repair: 5 min}", "faults.repair: only valid with node_mtbf or device_mtbf");
  refused("faults={restart: 5 min}", "faults.restart: only valid with node_mtbf or device_mtbf");
  refused("faults={repair: 5 min, links: []}", "faults.repair: only valid with node_mtbf or device_mtbf");
  const auto refused_link = [](const std::string& link, const std::string& message) {
    refused("faults={links: [{" + link + "}]}", "faults.links[0]" + message);
  };
  refused_link("at: 1 s, lasts: 1 s", ": expected either links, names of links, or node, whose NICs fail");
  refused_link("node: 1, links: '*', at: 1 s, lasts: 1 s",
               ": expected either links, names of links, or node, whose NICs fail");
  refused_link("node: 1024, at: 1 s, lasts: 1 s", ".node: expected an integer from 0 to 1023, got \"1024\"");
  refused_link("node: 1, lasts: 1 s", ": expected either at, the time of the only failure, or mtbf");
  refused_link("node: 1, at: 1 s, mtbf: 1 h, lasts: 1 s",
               ": expected either at, the time of the only failure, or mtbf");
  refused_link("node: 1, at: 1 s", ".lasts: missing (expected the time until the links are repaired)");
  refused_link("node: 1, at: 1 s, lasts: 1 s, share: 1",
               ".share: expected a number from 0 to 0.99, got \"1\"");
  refused_link(
      "links: node 3 NIC 0 upp, lasts: 1 s",
      ".links: expected names of links, such as \"node 3 NIC 0 up\" (* stands for anything), got \"node 3 "
      "NIC 0 upp\"");
  refused("faults={slow: {share: 0.1, factor: 2, lasts: 1 s}}",
          "faults.slow: expected both lasts and every, or neither (always slow)");
  refused("faults={slow: {share: 0.1, factor: 0.5}}",
          "faults.slow.factor: expected a number from 1 to 1000000, got \"0.5\"");
  refused("faults={checkpoint: {interval: best, snapshot: 1 s}}",
          "faults.checkpoint.snapshot: only valid with background: true");
  refused("faults={answer: shrink, checkpoint: {interval: best}}",
          "faults.checkpoint: interval: best is not available with answer: shrink; give an interval");
  refused("faults={answer: restart, exchange: 1 s}", "faults.exchange: only valid with answer: shrink");
  refused("campaign={points: 10, folds: 2, folds_at_once: 3}",
          "campaign.folds_at_once: expected at most 2 folds, got 3");
  refused("campaign={points: 0}", "campaign.points: expected an integer from 1 to 1000000, got \"0\"");
  refused("campaign={points: 10, optimizer: {by: evolution}}",
          "campaign.optimizer.generation: missing (expected points of a generation)");
  refused("campaign={points: 9, optimizer: {count: 2, history: own}}",
          "campaign.optimizer: history: own needs at most one optimizer for each group; got 2 optimizers and "
          "1 groups");
  refused(
      "campaign={points: 10, groups: 100}",
      "campaign: needs 1601 devices, but platform ethernet-cpu has 1024; set platform.nodes (at most 16384)");
  CHECK_THROWS_WITH(quick({"campaign={points: 9, groups: 999999, folds: 99999, folds_at_once: 99999}"}),
                    Catch::Matchers::EndsWith("campaign: needs 1599982400017 devices, but platform "
                                              "ethernet-cpu has 1024; set platform.nodes (at most 16384)"));
}

TEST_CASE("noise that would change nothing is refused", "[scenarios][errors]") {
  const std::string spread =
      "noise.sigma: missing (expected the spread of the jitter, a number from 0 to 10)";
  refused("noise={jitter: lognormal}", spread);
  refused("noise={jitter: layers}", spread);
  refused("noise={sigma: 0.1}", "noise.sigma: only valid with jitter: lognormal or layers");
  refused("noise={straggler_share: 0.1}",
          "noise.straggler_factor: missing (expected by how much they are slower, a number >= 1)");
  refused("noise={stragglers: [{worker: 1}]}",
          "noise.stragglers[0].factor: missing (expected by how much it is slower, a number >= 1)");
  refused("noise={stragglers: [{node: 1, factor: 2}]}",
          "noise.stragglers[0].node: only valid with per: node");
  refused("noise={stragglers: [{worker: 3, factor: 2}, {worker: 3}]}",
          "noise.stragglers[1].factor: missing (expected by how much it is slower, a number >= 1)");
  CHECK_THROWS_WITH(quick({"noise={stragglers: [{worker: 3, factor: 2}, {worker: 3, factor: 4}]}"}),
                    Catch::Matchers::EndsWith("worker 3 is listed twice; give one factor"));
  refused("noise={straggler_factor: 2}", "noise.straggler_factor: only valid with straggler_share");
}

TEST_CASE("faults and campaigns need the length of a training", "[scenarios][errors]") {
  Scenario scenario = read_scenario(shipped_scenario("resnet50-ethernet-cpu"), {});
  std::erase_if(scenario.document.entries, [](const auto& one) { return one.first.text == "epoch"; });
  Library library;
  const auto built = [&](const std::string& setting) {
    return build_experiment(scenario.document, {parse_assignment("workers=4"), parse_assignment(setting)},
                            library);
  };
  CHECK_THROWS_WITH(built("faults={node_mtbf: 5 h}"),
                    "--set faults={node_mtbf: 5 h}: faults: the length of a training is unknown: give epoch: "
                    "{samples, epochs}, "
                    "or steps here");
  CHECK(built("faults={steps: 1000}").faults->steps == 1000);
  CHECK(built("campaign={points: 3, steps: 1000}").campaign->steps == 1000);
}

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
