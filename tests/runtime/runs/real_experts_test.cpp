#include <catch2/catch.hpp>

#include "learned_curve.hpp"
#include "planned_parts.hpp"
#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "runtime/scenario_points/validation_plan.hpp"

namespace stepcast::real_experts_test {
namespace {

/// Two layers of experts, between and after layers that all ranks have.
const std::string kExperts = R"(
name: experts
source: test
input: [6, 4]
layers:
  - {name: embed, kind: dense, units: 8}
  - {name: norm1, kind: layer_norm}
  - {name: experts1, kind: experts, experts: 4, top: 2, hidden: 12}
  - {name: add1, kind: add, inputs: [experts1, embed]}
  - {name: mix, kind: dense, units: 8}
  - {name: norm2, kind: layer_norm}
  - {name: experts2, kind: experts, inputs: [norm2], experts: 4, top: 1, hidden: 8}
  - {name: add2, kind: add, inputs: [experts2, mix]}
  - {name: flatten, kind: reshape, shape: [48]}
  - {name: classes, kind: dense, units: 3}
  - {name: loss, kind: softmax_cross_entropy}
)";
constexpr std::int64_t kSamples = 4;  // of a replica
constexpr int kSteps = 4;
constexpr double kRate = 0.02;  // of the mean over all samples

void fill(Network& network, std::int64_t first) {
  std::vector<float> inputs, targets;
  for (std::int64_t sample = first; sample < first + network.input().shape().front(); ++sample) {
    for (std::int64_t i = 0; i < 24; ++i) inputs.push_back(input_value(sample, i));
    targets.push_back(static_cast<float>(7 * sample % 3));
  }
  network.input().write(inputs);
  const std::size_t loss = network.model().layers.size() - 1;
  if (network.contains(loss)) network.kernel(loss).targets()->write(targets);
}

struct Case {
  std::string options;
  int stages, replicas;
  std::string kind = "synchronous";
};

/// Trains on ranks that are threads. Checks that each has its part of the parameters of one rank with all
/// samples.
void check_trains_as_alone(const Case& c) {
  CAPTURE(c.options);
  const PlannedParts planned(c.stages * c.replicas, kExperts,
                             "{kind: " + c.kind + ", all_reduce: ring, " + c.options + "}", kSamples, kSteps);
  const ModelPartition& partition = planned.plan.partition;
  REQUIRE(unsupported_in_real_run(planned.plan, c.stages * c.replicas, false) == "");
  const Parameters alone =
      trained_on_one_rank(planned.model, kSamples * c.replicas, kRate, kSteps, [](Network& network) {
        fill(network, 0);
      }).parameters;
  const auto train = [&](int rank, std::mutex& building, const auto& run) {
    const int stage = rank / c.replicas, replica = rank % c.replicas, place = rank % partition.parts();
    const auto backend = make_onednn_backend();
    std::unique_lock lock(building);
    const PipelineStageNetworks networks = pipeline_stage_networks(
        *backend, planned.model, partition, {stage, c.stages, place},
        {.batch = partition.micro_batch, .optimizer = momentum_optimizer(kRate / c.replicas)});
    lock.unlock();
    const ChunkNetworks& chunk = networks.chunks.front();
    for (int i = 0; i < partition.micro_batches; ++i)
      fill(*chunk.of_micro_batch[i], kSamples * replica + i * partition.micro_batch);
    const auto device = pipeline_stage_device(networks, partition, stage);
    CHECK(run(*device).step_ends.size() == kSteps);
    const std::lock_guard checking(building);
    const SharedPart part = expert_shard(planned.model, partition.expert_ways, place);
    const Parameters own = read_parameters(chunk.first());
    for (std::size_t layer = 0, array = 0; layer < planned.model.layers.size(); ++layer) {
      for (std::size_t k = 0; k < planned.model.layers[layer].parameters.size(); ++k, ++array) {
        if (!chunk.first().contains(layer)) continue;
        const std::vector<float> expected = extract_part(alone[array], part, layer, k);
        REQUIRE(own[array].size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i)
          CHECK(own[array][i] == Approx(expected[i]).margin(5e-6));
      }
    }
  };
  run_parts(planned, train);
}

std::string why_not(const std::string& options, const std::string& kind = "synchronous") {
  return PlannedParts(4, kExperts, "{kind: " + kind + ", " + options + "}", kSamples, 1)
      .plan.partition.simulated_only;
}

}  // namespace

TEST_CASE("ranks that share experts train like one rank with all of them, to rounding",
          "[validate][training]") {
  check_trains_as_alone(GENERATE(
      Case{"mesh: {expert: 2}", 1, 2}, Case{"mesh: {expert: 4}, bucket: tensor", 1, 4},
      Case{"mesh: {expert: 2}, bucket: 200 B", 1, 4},
      Case{"mesh: {expert: 2}, accumulation: 2, halo_overlap: false, overlap: false", 1, 2},
      Case{"mesh: {expert: 2}, recompute: full, accumulation: 2", 1, 2},
      Case{"mesh: {pipeline: 2, expert: 2}, split_points: [experts2], accumulation: 4", 2, 2},
      Case{"mesh: {pipeline: 2, expert: 2}, split_points: [add1], accumulation: 2, recompute: stage", 2, 2}));
}

TEST_CASE("ranks that share experts learn like ranks with whole networks, to rounding",
          "[validate][learning]") {
  using Kind = DataOptions::Kind;
  const test::LearningCase c =
      GENERATE(test::LearningCase{"{kind: synchronous, all_reduce: ring, mesh: {expert: 2}}", 2, 2, &kExperts,
                                  Kind::sequences},
               test::LearningCase{"{kind: synchronous, all_reduce: ring, mesh: {pipeline: 2, expert: 2}, "
                                  "split_points: [mix], accumulation: 2}",
                                  4, 2, &kExperts, Kind::sequences});
  CAPTURE(c.strategy);
  LearningOptions options = test::options_of(c);
  options.rate.base = 0.01;  // with more the loss grows without bound
  const test::Curve whole =
      test::learned("{kind: synchronous, all_reduce: ring}", c.replicas, kExperts, options);
  test::check_same(test::learned(c.strategy, c.ranks, kExperts, options), whole);
  CHECK(std::abs(whole.evaluations.back().loss - whole.evaluations.front().loss) > 0.01);
}

TEST_CASE("experts that ranks share in ways without kernels are refused with the reason", "[validate]") {
  CHECK(why_not("mesh: {expert: 2}, imbalance: 1.5") == "");
  CHECK(why_not("mesh: {expert: 2}, capacity_factor: 2") == "capacity_factor");
  CHECK(why_not("mesh: {expert: 2}, expert_exchange: deep_ep") == "expert_exchange: deep_ep");
  CHECK(why_not("mesh: {expert: 2}, shard: optimizer") == "shard beside mesh.expert");
  CHECK(why_not("ways: 2", "mixture_of_experts") == "");
  CHECK(why_not("ways: 2, capacity_factor: 1.5", "mixture_of_experts") == "capacity_factor");
  CHECK(why_not("ways: 2, recompute: true", "mixture_of_experts") == "");
  CHECK(why_not("mesh: {tensor: 2, expert: 2}") == "mesh.expert beside mesh.tensor");
}

}  // namespace stepcast::real_experts_test
