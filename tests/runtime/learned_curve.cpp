#include "learned_curve.hpp"

#include <catch2/catch.hpp>

#include "kernels/timing/host_info.hpp"
#include "planned_parts.hpp"
#include "runtime/learning/learning_runs.hpp"

namespace stepcast::test {

const std::string kImages = R"(
name: images
source: test
input: [2, 16, 16]
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 3, pad: 1}
  - {name: relu1, kind: relu}
  - {name: pool1, kind: max_pool, kernel: 2}
  - {name: conv2, kind: convolution, filters: 8, kernel: 3, pad: 1}
  - {name: tanh2, kind: tanh}
  - {name: flatten, kind: reshape, shape: [512]}
  - {name: fc1, kind: dense, units: 16}
  - {name: tanh3, kind: tanh}
  - {name: fc2, kind: dense, units: 5}
  - {name: loss, kind: softmax_cross_entropy}
)";

const std::string kDigits = R"(
name: digits
source: test
input: [1, 28, 28]
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 3}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: convolution, filters: 8, kernel: 3}
  - {name: relu2, kind: relu}
  - {name: pool, kind: max_pool, kernel: 2}
  - {name: flatten, kind: reshape, shape: [1152]}
  - {name: fc1, kind: dense, units: 16}
  - {name: relu3, kind: relu}
  - {name: fc2, kind: dense, units: 10}
  - {name: loss, kind: softmax_cross_entropy}
)";

const std::string kPixels = R"(
name: mesh
source: test
input: [3, 26, 24]
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 5, stride: 2, pad: 2}
  - {name: bn1, kind: batch_norm}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: convolution, filters: 1, kernel: 3, pad: 1}
  - {name: loss, kind: sigmoid_cross_entropy}
)";

const std::string kBlocks = R"(
name: blocks
source: test
input: [6, 4]
layers:
  - {name: embed, kind: dense, units: 8}
  - {name: expand, kind: dense, units: 12}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8}
  - {name: add, kind: add, inputs: [contract, embed]}
  - {name: flatten, kind: reshape, shape: [48]}
  - {name: classes, kind: dense, units: 3}
  - {name: loss, kind: softmax_cross_entropy}
)";

LearningOptions options_of(const LearningCase& c) {
  LearningOptions options;
  options.mini_batches = kLearningSteps;
  options.evaluate_every = 2;
  options.optimizer = {.momentum = 0.9};
  options.rate = {.base = 0.05, .linear = true, .warm_up = 3};
  options.data.kind = c.data;
  options.data.samples = 40;  // the data set restarts within a step
  options.data.test_samples = 30;
  return options;
}

Curve learned(const std::string& strategy, int ranks, const std::string& model,
              const LearningOptions& learning, MakeBackend make) {
  const PlannedParts planned(ranks, model, strategy, 8, kLearningSteps);
  const ModelPartition& partition = planned.plan.partition;
  REQUIRE(partition.simulated_only == "");
  Experiment experiment;
  experiment.model = planned.model;
  experiment.plan = planned.plan;
  experiment.strategy = "test";
  experiment.learning = learning;
  const auto data = learning_data(experiment);
  std::vector<RankState> states(ranks);
  std::mutex building;
  Curve curve;
  run_ranks("memory", ranks, [&](Transport& transport, Transport& message_transport) {
    set_kernel_threads(1);
    const RankId rank = transport.rank();
    const auto backend = make();
    std::unique_lock lock(building);
    Learner learner(experiment, *backend,
                    {.rank = rank,
                     .batch = partition.form == ModelPartition::Form::none ? 8 : partition.micro_batch,
                     .data = data,
                     .on_progress = [] {},
                     .transport = &transport});
    const auto device = learner.device();
    lock.unlock();
    ProgressThread thread;
    PointToPoint messages(message_transport);
    CompletionQueue completions;
    RankCollectives collectives(planned.plan, choices_without_forecast(planned.plan), rank);
    RealWorld world{.plan = planned.plan,
                    .transport = transport,
                    .collective_thread = thread,
                    .messages = messages,
                    .device = *device,
                    .collectives = collectives,
                    .completions = completions,
                    .state = states[rank.index()]};
    world.on_step_end = [&learner](double seconds) { learner.step_ended(seconds); };
    run_program(world, 1);
    if (learner.holds_evaluated_parameters()) {
      const std::vector<EvaluatedLoss> evaluations = learner.evaluate();
      if (rank == RankId{0}) curve = {evaluations, learner.final_parameters()};
    }
    barrier(transport);
  });
  return curve;
}

void check_same(const Curve& one, const Curve& other) {
  REQUIRE(one.evaluations.size() == kLearningSteps / 2 + 1);
  REQUIRE(other.evaluations.size() == one.evaluations.size());
  for (std::size_t i = 0; i < one.evaluations.size(); ++i) {
    CAPTURE(i);
    const EvaluatedLoss &a = one.evaluations[i], &b = other.evaluations[i];
    CHECK(a.step == b.step);
    CHECK(a.samples == Approx(b.samples).epsilon(1e-4));
    CHECK(a.loss == Approx(b.loss).epsilon(1e-4));
    CHECK(*a.accuracy == Approx(*b.accuracy).epsilon(1e-4));
  }
  REQUIRE(one.last.size() == other.last.size());
  for (std::size_t k = 0; k < one.last.size(); ++k) {
    REQUIRE(one.last[k].size() == other.last[k].size());
    for (std::size_t i = 0; i < one.last[k].size(); ++i)
      CHECK(one.last[k][i] == Approx(other.last[k][i]).margin(5e-5));
  }
}

}  // namespace stepcast::test
