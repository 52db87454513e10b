#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "guarded_backend.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "planned_parts.hpp"
#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "runtime/scenario_points/validation_plan.hpp"

namespace stepcast::real_pipeline_test {
namespace {

// The second input of the sum passes through the middle stage.
const std::string kNet = R"(
name: test
source: test
input: [6]
layers:
  - {name: fc1, kind: dense, units: 12}
  - {name: relu1, kind: relu}
  - {name: fc2, kind: dense, units: 12}
  - {name: relu2, kind: relu}
  - {name: fc3, kind: dense, units: 12}
  - {name: sum, kind: add, inputs: [fc3, relu1]}
  - {name: fc4, kind: dense, units: 5}
  - {name: loss, kind: mean_squared_error}
)";
constexpr std::int64_t kBatch = 12;  // samples of a replica
constexpr int kSteps = 4;
constexpr std::size_t kLoss = 7;

/// Fills the network with samples from `first` on.
void fill(Network& network, std::int64_t first) {
  fill_samples(network.input(), first, input_value);
  if (network.contains(kLoss)) fill_samples(*network.kernel(kLoss).targets(), first, target_value);
}

/// Parameters by layer and array; empty for layers that the network does not have.
std::vector<std::vector<std::vector<float>>> parameters_by_layer(Network& network) {
  std::vector<std::vector<std::vector<float>>> all(network.model().layers.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; network.contains(i) && k < network.model().layers[i].parameters.size(); ++k)
      all[i].push_back(network.kernel(i).read_parameter(k));
  }
  return all;
}

struct Alone {
  std::vector<std::vector<std::vector<float>>> parameters;
  double loss = 0;
};

/// The whole network on one rank with the whole mini-batch.
Alone trained_alone(const Model& model, std::int64_t batch) {
  set_kernel_threads(1);
  const auto backend = make_onednn_backend();
  Network network(*backend, model, {.batch = batch, .optimizer = momentum_optimizer(0.1)});
  fill(network, 0);
  for (int step = 0; step < kSteps; ++step) network.step();
  return {parameters_by_layer(network), network.loss()};
}

struct Case {
  std::string options;
  int stages, replicas;
  bool sharded = false;  ///< only the owner of a parameter has its last value
};

/// Checks that ranks with this strategy have the parameters and the loss of one rank with the whole network.
void check_trains_as_alone(const std::string& strategy, const Case& c) {
  // Guarded: device memory that the host cannot access, with payloads through the host or from device to
  // device.
  const bool guarded = GENERATE(false, true);
  const bool by_channels = guarded && GENERATE(false, true);
  CAPTURE(strategy, guarded, by_channels);
  const PlannedParts planned(c.stages * c.replicas, kNet, strategy, kBatch, kSteps);
  const ModelPartition& partition = planned.plan.partition;
  REQUIRE(unsupported_in_real_run(planned.plan, c.stages * c.replicas, false).empty());
  const Alone alone = trained_alone(planned.model, kBatch * c.replicas);

  std::vector<std::vector<std::vector<std::vector<float>>>> results(planned.plan.endpoints.size());
  std::vector<double> loss(results.size());
  test::FakeChannels channels;
  const auto train = [&](int rank, std::mutex& building, const auto& run) {
    const int stage = rank / c.replicas, replica = rank % c.replicas;
    const auto backend = guarded ? test::make_guarded_backend() : make_onednn_backend();
    std::unique_lock lock(building);
    const PipelineStageNetworks networks = pipeline_stage_networks(
        *backend, planned.model, partition, {stage, c.stages},
        {.batch = partition.micro_batch, .optimizer = momentum_optimizer(0.1 / c.replicas)});
    lock.unlock();
    for (const ChunkNetworks& chunk : networks.chunks) {
      for (int i = 0; i < partition.micro_batches; ++i)
        fill(*chunk.of_micro_batch[i], kBatch * replica + i * partition.micro_batch);
    }
    const auto device = pipeline_stage_device(networks, partition, stage,
                                              owned_slices(planned.plan, RankId(rank), networks, stage));
    const RealRun ran = run(*device);
    CHECK(ran.step_ends.size() == kSteps);
    auto& all = results[rank];
    all.resize(planned.model.layers.size());
    for (const ChunkNetworks& chunk : networks.chunks) {
      const auto own = parameters_by_layer(chunk.first());
      for (std::size_t layer = 0; layer < own.size(); ++layer) {
        if (!own[layer].empty()) all[layer] = own[layer];
      }
      for (const auto& one : chunk.of_micro_batch) loss[rank] += one->loss();
    }
  };
  run_parts(planned, train, by_channels ? &channels : nullptr);
  if (by_channels && c.stages > 1) CHECK(channels.transferred() > 0);

  std::vector<int> seen(planned.model.layers.size(), 0);
  double sum = 0;
  std::vector<std::size_t> ranks(results.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    sum += loss[rank];
    for (std::size_t layer = 0; layer < results[rank].size(); ++layer) {
      seen[layer] += results[rank][layer].empty() ? 0 : 1;
      for (std::size_t k = 0; k < results[rank][layer].size(); ++k) {
        const auto &own = results[rank][layer][k], &expected = alone.parameters[layer][k];
        REQUIRE(own.size() == expected.size());
        for (std::size_t i = 0; i < own.size(); ++i) {
          const auto right = [&](std::size_t of) {
            return !results[of][layer].empty() &&
                   results[of][layer][k][i] == Approx(expected[i]).margin(2e-6);
          };
          CHECK((c.sharded ? std::ranges::any_of(ranks, right) : right(rank)));
        }
      }
    }
  }
  for (const std::size_t layer : {0u, 2u, 4u, 6u}) CHECK(seen[layer] == c.replicas);
  CHECK(sum / c.replicas == Approx(alone.loss).epsilon(1e-5));
}

}  // namespace

TEST_CASE("a pipeline trains the same network as one rank, to rounding", "[validate][training]") {
  const auto c = GENERATE(
      Case{"stages: 1, micro_batches: 4", 1, 1},
      Case{"stages: 2, split_points: [fc3], micro_batches: 1, schedule: naive", 2, 1},
      Case{"stages: 2, split_points: [fc2], micro_batches: 4, schedule: naive", 2, 1},
      Case{"stages: 3, split_points: [fc2, fc3], micro_batches: 4, schedule: gpipe", 3, 1},
      Case{"stages: 3, split_points: [fc2, fc3], micro_batches: 4, schedule: 1f1b", 3, 1},
      Case{"stages: 2, split_points: [sum], micro_batches: 2, schedule: 1f1b, bucket: tensor, "
           "all_reduce: ring",
           2, 2},
      Case{"stages: 2, split_points: [fc3], micro_batches: 2, zero: 1, bucket: tensor, all_reduce: ring", 2,
           2},
      Case{"stages: 2, split_points: [fc3], micro_batches: 4, zero: 1, overlap: false, all_reduce: ring", 2,
           3},
      Case{"stages: 2, split_points: [fc2, relu2, sum], schedule: interleaved, chunks: 2, micro_batches: 4",
           2, 1},
      Case{"stages: 2, split_points: [relu1, fc3, fc4], schedule: interleaved, chunks: 2, micro_batches: 2, "
           "bucket: tensor, all_reduce: ring",
           2, 2},
      Case{"stages: 3, split_points: [relu1, fc2, relu2, fc3, fc4], schedule: interleaved, chunks: 2, "
           "micro_batches: 3, overlap: false, all_reduce: ring",
           3, 2},
      Case{"stages: 2, split_points: [fc3], micro_batches: 3, zero: 2, bucket: tensor, all_reduce: ring", 2,
           2},
      Case{"stages: 2, split_points: [fc3], micro_batches: 2, zero: 2, all_reduce: ring", 2, 3},
      Case{"stages: 2, split_points: [relu1, fc3, fc4], schedule: interleaved, chunks: 2, micro_batches: 4, "
           "zero: 1, "
           "bucket: tensor, all_reduce: ring",
           2, 2},
      Case{"stages: 2, split_points: [relu1, fc3, fc4], schedule: interleaved, chunks: 2, micro_batches: 2, "
           "zero: 2, "
           "all_reduce: ring",
           2, 2},
      Case{"stages: 3, split_points: [fc2, fc3], micro_batches: 4, schedule: gpipe, recompute: true", 3, 1},
      Case{"stages: 3, split_points: [fc2, fc3], micro_batches: 4, schedule: 1f1b, recompute: true", 3, 1},
      Case{"stages: 2, split_points: [fc2, relu2, sum], schedule: interleaved, chunks: 2, micro_batches: 4, "
           "recompute: true",
           2, 1},
      Case{"stages: 2, split_points: [fc3], micro_batches: 2, overlap: false, all_reduce: ring", 2, 2});
  check_trains_as_alone("{kind: pipeline, " + c.options + "}", c);
}

TEST_CASE("a mesh trains the same network as one rank, to rounding", "[validate][training]") {
  const auto c = GENERATE(
      Case{"mesh: {data: 2}, bucket: tensor", 1, 2}, Case{"shard: optimizer, bucket: 200 B", 1, 3},
      Case{"shard: gradients, accumulation: 3", 1, 2}, Case{"shard: parameters", 1, 2, true},
      Case{"shard: parameters, bucket: 200 B, accumulation: 3", 1, 3, true},
      Case{"shard: parameters, bucket: 200 B, accumulation: 2, recompute: true", 1, 4, true},
      Case{"shard: parameters, bucket: tensor, accumulation: 2, reshard_after_forward: false", 1, 2, true},
      Case{"shard: parameters, shard_within: 2, bucket: 200 B", 1, 4, true},
      Case{"shard: parameters, shard_within: 2, accumulation: 2, reshard_after_forward: false", 1, 4, true},
      Case{"mesh: {pipeline: 2}, split_points: [fc3], accumulation: 2, shard: gradients", 2, 2},
      Case{"mesh: {pipeline: 2}, split_points: [fc3], accumulation: 2, shard: parameters, bucket: 200 B, "
           "recompute: true",
           2, 2, true},
      Case{"mesh: {pipeline: 2}, split_points: [relu1, fc3, fc4], schedule: interleaved, chunks: 2, "
           "accumulation: 2, shard: parameters, bucket: tensor",
           2, 2, true});
  check_trains_as_alone("{kind: synchronous, all_reduce: ring, " + c.options + "}", c);
}

}  // namespace stepcast::real_pipeline_test
