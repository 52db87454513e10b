#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>

#include "sim/fidelity/fidelity_rule.hpp"
#include "sim/simulation.hpp"
#include "strategies/local_sgd/block_plan.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/groups_run.hpp"
#include "tests/sim/planned_run.hpp"

namespace stepcast::folding_rule_test {

// Tests what the rule for `fold: automatic` chooses, and the facts that it uses.

namespace {

constexpr CollectiveId kOnlyCollective{0};

Program passes(Worker& worker) {
  co_await worker.forward();
  co_await worker.collective(kOnlyCollective);
  worker.end_step();
}

Program many_passes(Worker& worker, int calls) {
  for (int i = 0; i < calls; ++i) {
    co_await worker.forward();
    co_await worker.collective(kOnlyCollective);
  }
  worker.end_step();
}

/// Eight workers on one switch in pairs, each with an all-reduce of 8 MB.
struct Pairs {
  Run run{switch_platform(8), 8, three_layers({1})};

  Pairs() {
    run.plan.endpoints = test::first_endpoints(8);
    run.plan.workloads.push_back(run.workload);
    run.plan.communicators.push_back(communicator(run.platform, run.plan.endpoints, first_ranks(8), 2));
    run.plan.communicators.back().all_reduce.algorithm = Algorithm::ring;
    run.plan.collectives.push_back(
        {Collective::Kind::all_reduce, CommunicatorId{0}, {Array::gradients, {}, {8e6}}, nullptr});
    run.plan.roles.push_back({"worker", RankId{0}, 8, 0, true, passes});
    run.simulation.plan = &run.plan;
  }

  void slow_down_last() {
    const int last = run.simulation.bandwidths.size() - 1;
    run.simulation.bandwidths.multiply(last, 0.5);
  }
};

/// Two rings of 32 workers each, with an all-reduce of 3,968 messages after every forward pass.
struct Rings {
  Run run{switch_platform(64), 64, three_layers({1})};

  Rings(int calls, Bytes buffer, double forward) {
    run.plan.endpoints = test::first_endpoints(64);
    for (LayerSeconds& layer : run.workload.median) layer = {forward / 3, 0, 0};
    run.plan.workloads.push_back(run.workload);
    run.plan.communicators.push_back(communicator(run.platform, run.plan.endpoints, first_ranks(64), 32));
    run.plan.communicators.back().all_reduce.algorithm = Algorithm::ring;
    run.plan.collectives.push_back(
        {Collective::Kind::all_reduce, CommunicatorId{0}, {Array::gradients, {}, buffer}, nullptr});
    run.plan.roles.push_back({"worker", RankId{0}, 64, 0, true,
                              [calls](Worker& worker) -> Program { return many_passes(worker, calls); }});
    run.simulation.plan = &run.plan;
  }

  void slow_down_last() { run.simulation.bandwidths.multiply(run.simulation.bandwidths.size() - 1, 0.5); }
  SimulationResult result() { return simulate(run.simulation); }
};

}  // namespace

TEST_CASE("equal groups are folded", "[sim]") {
  Pairs pairs;
  CHECK(to_text(simulate(pairs.run.simulation).folding) == "folded");
}

TEST_CASE("a slow link of one group leaves a program to each worker", "[sim]") {
  Pairs pairs;
  pairs.slow_down_last();
  CHECK(to_text(simulate(pairs.run.simulation).folding) == "unfolded");
}

TEST_CASE("jittered groups get a program for each worker", "[sim]") {
  Pairs pairs;
  pairs.run.simulation.noise.jitter = Noise::Jitter::lognormal;
  pairs.run.simulation.noise.sigma = 0.1;
  CHECK(to_text(simulate(pairs.run.simulation).folding) == "unfolded");
}

TEST_CASE("with a cheap fidelity, groups that differ are folded with rough accuracy", "[sim]") {
  Pairs pairs;
  pairs.slow_down_last();
  pairs.run.simulation.fidelity = Fidelity::coupled;
  CHECK(to_text(simulate(pairs.run.simulation).folding) == "folded, roughly");
}

TEST_CASE("groups that differ are folded roughly where asked for", "[sim]") {
  Pairs pairs;
  pairs.slow_down_last();
  pairs.run.simulation.fold = Folding::always;
  CHECK(to_text(simulate(pairs.run.simulation).folding) == "folded, roughly");
}

TEST_CASE("groups that differ are unfolded where the cheap run may be off, if it takes a minute at most",
          "[sim]") {
  Rings rings(100, {1e6}, 0);
  rings.slow_down_last();
  CHECK(to_text(rings.result().folding) == "unfolded");
}

TEST_CASE("groups that differ are folded closely where that can make no difference of 1 %", "[sim]") {
  Rings rings(100, {1e4}, 0.06);
  rings.slow_down_last();
  const auto result = rings.result();
  CHECK(to_text(result.folding) == "folded, closely");
  CHECK(to_text(result.fidelity) != "coupled, roughly");
}

TEST_CASE("groups that differ are folded roughly where all their messages take more than a minute", "[sim]") {
  Rings rings(20000, {1e6}, 0);
  rings.slow_down_last();
  CHECK(to_text(rings.result().folding) == "folded, roughly");
}

TEST_CASE("jittered workers in one group are folded", "[sim]") {
  Run run(switch_platform(8), 8, three_layers({1}));
  run.simulation.noise.jitter = Noise::Jitter::lognormal;
  run.simulation.noise.sigma = 0.1;
  CHECK(to_text(run.result().folding) == "folded");
}

TEST_CASE("calls of a step are counted once a micro-batch", "[sim]") {
  const std::string network =
      "{name: small, source: s, sample: 8 tokens, transformer_stack: {layers: 2, width: 16, heads: 4, "
      "sequence: 8, vocabulary: 32}}";
  const PlannedRun planned(8, network, "{kind: pipeline, stages: 2, tensor: 2, micro_batches: 4}", 8);
  const CallsPerStep calls = calls_per_step(planned.plan).value();
  CHECK(calls.messages == 8 * 4);  // four activations forward, four error signals back, of four pairs
  const auto called = [&](double times) { return std::ranges::count(calls.collectives, times); };
  CHECK(called(4) > 0);  // inside passes
  CHECK(called(1) > 0);  // of gradients
  CHECK(called(4) + called(1) == std::ssize(calls.collectives));
}

TEST_CASE("calls of workers whose master deals their work out are not counted", "[sim]") {
  Run run(switch_platform(4), 4, three_layers({1}));
  BlockSetup setup;
  setup.training.mini_batches = 4;
  setup.aggregation = Aggregation::all_reduce;
  setup.parameters = {24e6};
  setup.batch = 1;
  const auto plan = [&] { return block_plan(run.platform, run.endpoints, run.workload, setup); };
  CHECK(calls_per_step(plan()).has_value());
  setup.training.balanced = true;
  CHECK(!calls_per_step(plan()));
}

}  // namespace stepcast::folding_rule_test
