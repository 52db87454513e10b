#include <catch2/catch.hpp>

#include "tests/sim/child.hpp"
#include "tests/sim/planned_run.hpp"

namespace stepcast::pipeline_time_test {

namespace {

/// A model with eight layers of equal time, for four stages of two layers: 20 ms forward and 40 ms backward.
const std::string kEight =
    "{name: eight, source: s, input: [10], layers: [{name: a, kind: dense, units: 10}, {name: b, kind: "
    "gelu}, {name: "
    "c, kind: dense, units: 10}, {name: d, kind: gelu}, {name: e, kind: dense, units: 10}, {name: f, kind: "
    "gelu}, "
    "{name: g, kind: dense, units: 10}, {name: l, kind: mean_squared_error}]}";

constexpr double kForward = 0.020, kBackward = 0.040, kStageUpdate = 0.002;
constexpr double kMessage = 1e-6 + 40 / 1e9;  // ten numbers of one sample

struct Ran {
  double seconds, memory;
};

Ran run(const std::string& options, int workers = 4, int batch = 8, bool fold = true) {
  const auto numbers = numbers_from_child(2, [&] {
    PlannedRun planned(workers, kEight, "{kind: pipeline, stages: 4, " + options + "}", batch);
    planned.simulation.fold = fold ? Folding::always : Folding::never;
    return std::vector<double>{planned.last_step(), planned.plan.memory.total().value};
  });
  return {numbers[0], numbers[1]};
}

}  // namespace

TEST_CASE("GPipe's bubble is (S - 1) / (M + S - 1)", "[sim]") {
  for (const int micro_batches : {1, 2, 8}) {
    const double seconds =
        run("schedule: gpipe, micro_batches: " + std::to_string(micro_batches), 4, 8).seconds - kStageUpdate;
    const double message = 1e-6 + 40.0 * 8 / micro_batches / 1e9;
    CHECK(seconds == Approx((micro_batches + 3) * (kForward + kBackward) + 6 * message).epsilon(1e-9));
    const double busy = micro_batches * (kForward + kBackward);
    CHECK(1 - busy / seconds == Approx(3.0 / (micro_batches + 3)).epsilon(1e-3));
  }
}

TEST_CASE("one forward, one backward has GPipe's bubble and holds fewer micro-batches", "[sim]") {
  const Ran gpipe = run("schedule: gpipe, micro_batches: 8");
  const Ran alternating = run("schedule: 1f1b, micro_batches: 8");
  CHECK(alternating.seconds == Approx(gpipe.seconds).epsilon(1e-3));
  CHECK(alternating.memory < gpipe.memory);
}

TEST_CASE("ZB-H1's bubble is (S - 1) (F + B - W), a third of 1F1B's", "[sim]") {
  // F, B and W: 20 ms each, in which a stage computes forward, error signals, and gradients of weights.
  for (const int micro_batches : {4, 8, 16}) {
    const std::string count = ", micro_batches: " + std::to_string(micro_batches);
    const double split = run("schedule: zero_bubble" + count, 4, micro_batches).seconds - kStageUpdate;
    const double busy = micro_batches * 0.060;
    CHECK(split - busy == Approx(3 * 0.020).epsilon(1e-3));
    CHECK(run("schedule: 1f1b" + count, 4, micro_batches).seconds - kStageUpdate - busy ==
          Approx(3 * 0.060).epsilon(1e-3));
  }
  // Its stages hold as many micro-batches as 1F1B's first.
  for (int stage = 0; stage < 4; ++stage)
    CHECK(most_in_flight(pipeline_schedule(PipelineOrder::zero_bubble, stage, 4, 8))[0] == 4);
}

TEST_CASE("DualPipe's bubble is (S / 2 - 1) (F&B + B - 3 W), for two copies of the layers", "[sim]") {
  // Forward F and weights W take 20 ms each, a whole backward pass B 40 ms, both without exchanges F&B 60 ms.
  for (const int micro_batches : {8, 16}) {
    const Ran dual =
        run("schedule: dual_pipe, micro_batches: " + std::to_string(micro_batches), 4, micro_batches);
    const double bubble = (4 / 2 - 1) * (0.060 + 0.040 - 3 * 0.020);
    CHECK(dual.seconds - 2 * kStageUpdate == Approx(micro_batches * 0.060 + bubble).epsilon(1e-3));
    const Ran split =
        run("schedule: zero_bubble, micro_batches: " + std::to_string(micro_batches), 4, micro_batches);
    CHECK(dual.seconds < split.seconds);
  }
  // Each micro-batch passes each of the two chunks of a stage once, and S + 1 at most are in flight.
  for (int stage = 0; stage < 4; ++stage) {
    const auto actions = pipeline_schedule(PipelineOrder::dual_pipe, stage, 4, 12, 2);
    int forwards = 0, weights = 0;
    for (const PipelineAction& one : actions) {
      forwards += one.pass == Work::forward ? 1 : 0;
      weights += one.whole || one.weights ? 1 : 0;
    }
    CHECK(forwards == 12);
    CHECK(weights == 12);
    const std::vector<int> held = most_in_flight(actions, 2);
    CHECK(held[0] + held[1] == 4 + 1);
  }
}

TEST_CASE("zero bubble sums gradients once, after the weights of the last micro-batch", "[sim]") {
  const auto step = [](const std::string& schedule) {
    return numbers_from_child(1, [&] {
      const std::string mesh =
          "{kind: synchronous, mesh: {pipeline: 4}, shard: parameters, accumulation: 8, ";
      return std::vector<double>{PlannedRun(8, kEight, mesh + schedule + "}", 8).last_step()};
    })[0];
  };
  CHECK(step("schedule: 1f1b") - step("schedule: zero_bubble") == Approx(3 * 0.040).epsilon(0.01));
}

TEST_CASE("messages between two stages go one after the other: the next stage begins with the first",
          "[sim]") {
  constexpr int kMicroBatches = 4;
  const int batch = kMicroBatches * 1'500'000;
  const double message = 1e-6 + 40.0 * batch / kMicroBatches / 1e9;  // longer than a backward pass
  const double seconds = run("schedule: gpipe, micro_batches: 4", 4, batch).seconds;
  // One micro-batch passes all stages in both directions; the others follow at the pace of the links.
  CHECK(seconds == Approx(4 * (kForward + kBackward) + 2 * (3 + kMicroBatches - 1) * message + kStageUpdate)
                       .epsilon(1e-9));
}

TEST_CASE("a naive pipeline takes the sum of its stages", "[sim]") {
  const double one = 4 * (kForward + kBackward);
  CHECK(run("schedule: naive, micro_batches: 1", 4, 1).seconds ==
        Approx(one + 6 * kMessage + kStageUpdate).epsilon(1e-9));
  CHECK(run("schedule: naive, micro_batches: 8").seconds ==
        Approx(8 * (one + 6 * kMessage) + kStageUpdate).epsilon(1e-9));
}

TEST_CASE("recomputation adds a forward pass to every backward pass", "[sim]") {
  CHECK(run("schedule: naive, micro_batches: 1, recompute: true", 4, 1).seconds ==
        Approx(4 * (2 * kForward + kBackward) + 6 * kMessage + kStageUpdate).epsilon(1e-9));
}

TEST_CASE("without recompute_last the last micro-batch is not computed again", "[sim]") {
  const std::string naive = "schedule: naive, micro_batches: 8, recompute: true";
  const double all = run(naive).seconds, but_one = run(naive + ", recompute_last: false").seconds;
  CHECK(all - but_one == Approx(4 * kForward).epsilon(1e-6));
}

TEST_CASE("stages begin where they are told to", "[sim]") {
  // The stages have 1, 1, 1 and 5 layers. The last stage decides the pace, and the first stage ends last.
  const double seconds = run("schedule: gpipe, micro_batches: 8, split_points: [b, c, d]").seconds;
  CHECK(seconds == Approx(8 * 5 * 0.030 + 3 * 0.030 + 6 * kMessage + 0.001).epsilon(1e-9));
}

TEST_CASE("stages have as many blocks, and the last one also the layers after them", "[sim]") {
  const std::string blocks =
      "{name: blocks, source: s, input: [10], layers: [{repeat: 4, name: block, layers: [{name: a, kind: "
      "dense, units: 10}, {name: b, kind: gelu}]}, {name: c, kind: gelu}, {name: d, kind: gelu}, {name: e, "
      "kind: gelu}, {name: l, kind: mean_squared_error}]}";
  const std::string pipeline = "{kind: pipeline, schedule: gpipe, micro_batches: 8, split: blocks, stages: ";
  const double seconds = numbers_from_child(1, [&] {
    PlannedRun planned(4, blocks, pipeline + "4}", 8);
    return std::vector<double>{planned.last_step()};
  })[0];
  // Stages of 2, 2, 2 and 6 layers.
  CHECK(seconds == Approx(8 * 6 * 0.030 + 3 * 2 * 0.030 + 6 * kMessage + kStageUpdate).epsilon(1e-9));
  CHECK_THROWS_WITH(PlannedRun(5, blocks, pipeline + "5}", 8),
                    "strategy.yaml:1:60: strategy.split: 4 blocks cannot be divided equally among 5 stages; "
                    "give split: time or split_points");
  // What is before and after the blocks counts as a block each: stages of 2, 4 and 6 layers.
  const double three = numbers_from_child(1, [&] {
    PlannedRun planned(3, blocks, pipeline + "3}", 8);
    return std::vector<double>{planned.last_step()};
  })[0];
  CHECK(three == Approx(8 * 6 * 0.030 + (2 + 4) * 0.030 + 4 * kMessage + 2 * 0.001).epsilon(1e-9));
}

TEST_CASE("replicas of a pipeline, folded and not, take the same step", "[sim]") {
  const std::string options = "schedule: 1f1b, micro_batches: 4, all_reduce: ring";
  CHECK(run(options, 8, 8, true).seconds == Approx(run(options, 8, 8, false).seconds).epsilon(1e-4));
}

TEST_CASE("interleaving v chunks a stage divides the bubble by v", "[sim]") {
  // Four stages have two chunks of one layer each, so a step takes (M + (S - 1) / v) times the time of a
  // stage.
  const double plain = run("schedule: 1f1b, micro_batches: 8").seconds - kStageUpdate;
  const double interleaved = run("schedule: interleaved, chunks: 2, micro_batches: 8").seconds - kStageUpdate;
  CHECK(plain == Approx((8 + 3) * (kForward + kBackward)).epsilon(1e-3));
  CHECK(interleaved == Approx((8 + 3.0 / 2) * (kForward + kBackward)).epsilon(1e-3));
  // With two stages of four chunks, messages go in both directions between the same two devices.
  const auto two = numbers_from_child(1, [] {
    PlannedRun planned(2, kEight,
                       "{kind: pipeline, stages: 2, schedule: interleaved, chunks: 4, micro_batches: 4}", 4);
    return std::vector<double>{planned.last_step()};
  });
  CHECK(two[0] == Approx((4 + 1.0 / 4) * 4 * 0.030 + 0.004).epsilon(1e-3));
}

TEST_CASE("interleaved replicas, folded and not, take the same step", "[sim]") {
  const std::string options = "schedule: interleaved, chunks: 2, micro_batches: 4, all_reduce: ring, zero: 1";
  CHECK(run(options, 8, 8, true).seconds == Approx(run(options, 8, 8, false).seconds).epsilon(1e-4));
}

TEST_CASE("ZeRO in a pipeline scatters gradients, shares the update and gathers parameters", "[sim]") {
  // There are two replicas. Each stage is one dense layer of 100 weights and 10 biases; the last stage has
  // other layers.
  const std::string options =
      "schedule: gpipe, micro_batches: 2, all_reduce: ring, overlap: false, bucket: model";
  const Ran whole = run(options, 8, 2), dealt = run(options + ", zero: 1", 8, 2);
  CHECK(whole.seconds - dealt.seconds == Approx(kStageUpdate / 2).epsilon(1e-6));  // an all-reduce's bytes
  CHECK(whole.memory - dealt.memory == Approx(4.0 * 110 / 2));                     // half of the momentum
  const Ran gradients =
      run("schedule: gpipe, micro_batches: 2, all_reduce: ring, bucket: model, zero: 2", 8, 2);
  CHECK(whole.memory - gradients.memory == Approx(2 * 4.0 * 110 / 2));
  // Each backward turn scatters its gradients beside the next turn, so only the last scatter and the gathers
  // add time.
  CHECK(gradients.seconds == Approx(dealt.seconds).epsilon(1e-4));
}

TEST_CASE("tensor, pipeline and data parallelism go with ZeRO", "[sim]") {
  const std::string blocks =
      "{name: blocks, source: s, transformer_stack: {layers: 4, width: 64, heads: 4, sequence: 32, "
      "vocabulary: "
      "100}}";
  const auto state = [&](const std::string& zero) {
    const PlannedRun planned(
        8, blocks, "{kind: pipeline, stages: 2, tensor: 2, micro_batches: 2, schedule: 1f1b" + zero + "}", 2);
    return planned.plan.memory.optimizer_state.value;
  };
  CHECK(state(", zero: 1") == Approx(state("") / 2));
  const double seconds = numbers_from_child(1, [&] {
    PlannedRun planned(
        8, blocks,
        "{kind: pipeline, stages: 2, tensor: 2, micro_batches: 2, schedule: interleaved, chunks: 2, "
        "zero: 1}",
        2);
    return std::vector<double>{planned.last_step()};
  })[0];
  CHECK(seconds > 0);
}

TEST_CASE("bad pipelines are refused with place and reason", "[sim][errors]") {
  CHECK_THROWS_WITH(PlannedRun(6, kEight, "{kind: pipeline, stages: 4}"),
                    "strategy.yaml:1:26: strategy.stages: 6 workers cannot form groups of 4; give a divisor");
  CHECK_THROWS_WITH(PlannedRun(9, kEight, "{kind: pipeline, stages: 9}"),
                    "strategy.yaml:1:26: strategy.stages: 8 layers cannot form 9 stages");
  CHECK_THROWS_WITH(
      PlannedRun(6, kEight, "{kind: pipeline, stages: 2, tensor: 3}"),
      "strategy.yaml:1:37: strategy.tensor: layer b has 10 features, which 3 devices cannot share evenly");
  CHECK_THROWS_WITH(
      PlannedRun(4, kEight, "{kind: pipeline, stages: 2, accumulation: 2}"),
      "strategy.yaml:1:43: strategy.accumulation: not valid with kind: pipeline; give micro_batches");
  const auto refused = [](const std::string& options, const std::string& message) {
    CHECK_THROWS_WITH(PlannedRun(4, kEight, "{kind: pipeline, stages: 4, " + options + "}", 8),
                      "strategy.yaml:1:" + message);
  };
  refused("schedule: interleaved, micro_batches: 4",
          "1: strategy.chunks: missing (expected chunks of layers that each stage has, an integer >= 2)");
  refused("schedule: interleaved, chunks: 2, micro_batches: 6",
          "78: strategy.micro_batches: interleaved needs a multiple of the 4 stages, got 6 micro-batches");
  refused("schedule: interleaved, chunks: 1",
          "60: strategy.chunks: expected an integer from 2 to 1000, got \"1\"");
  refused("chunks: 2", "37: strategy.chunks: only valid with schedule: interleaved");
  refused("schedule: interleaved, chunks: 3, micro_batches: 4",
          "26: strategy.stages: 8 layers cannot form 12 stages");
  refused(
      "schedule: gpip",
      "39: strategy.schedule: expected one of naive, gpipe, 1f1b, interleaved, zero_bubble, dual_pipe, got "
      "\"gpip\"; did you mean "
      "\"gpipe\"?");
  refused("schedule: dual_pipe, micro_batches: 7",
          "65: strategy.micro_batches: dual_pipe needs an even number of micro-batches, at least 8, got 7");
  refused("schedule: dual_pipe, micro_batches: 8, recompute: true",
          "79: strategy.recompute: expected selective or operators, with schedule: dual_pipe, got \"true\"");
  refused("split_points: [b, b, d]",
          "47: strategy.split_points[1]: expected the first layer of a stage, after that of the stage "
          "before, got \"b\"");
  refused("split_points: [b]",
          "43: strategy.split_points: expected the first layers of stages 2 to 4, got a list");
  refused("micro_batches: 0", "44: strategy.micro_batches: expected an integer from 1 to 100000, got \"0\"");
  refused("zero: 3", "35: strategy.zero: expected an integer from 0 to 2, got \"3\"");
  refused(
      "schedule: dual_pipe, micro_batches: 8, zero: 2, overlap: false",
      "86: strategy.overlap: false is not valid with schedule: dual_pipe where gradients are partitioned");
  CHECK_THROWS_WITH(
      PlannedRun(4, kEight,
                 "{kind: pipeline, stages: 1, schedule: interleaved, chunks: 2, micro_batches: 4}"),
      "strategy.yaml:1:39: strategy.schedule: interleaved needs stages >= 2, got 1");
}

}  // namespace stepcast::pipeline_time_test
