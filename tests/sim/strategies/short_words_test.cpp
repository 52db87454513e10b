#include <catch2/catch.hpp>

#include "sim/fidelity/run_cost.hpp"
#include "tests/sim/carried_bytes.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/planned_run.hpp"

namespace stepcast::short_words_test {

namespace {

/// Two convolutions with a batch norm on maps of 16 x 16, and a dense layer.
const std::string kMaps =
    "{name: maps, source: s, input: [4, 16, 16], layers: [{name: a, kind: convolution, filters: 8, kernel: "
    "3, pad: 1, bias: false}, {name: n, kind: batch_norm}, {name: b, kind: convolution, filters: 8, kernel: "
    "3, pad: 1, bias: false}, {name: f, kind: reshape, shape: [2048]}, {name: d, kind: dense, units: 16}, "
    "{name: l, kind: softmax_cross_entropy}]}";
const std::string kBlocks =
    "{name: blocks, source: s, transformer_stack: {layers: 4, width: 64, heads: 4, sequence: 32, vocabulary: "
    "100}}";
const std::string kExperts =
    "{name: experts, source: s, input: [32, 64], layers: [{name: a, kind: dense, units: 64}, {name: e, kind: "
    "experts, experts: 4, top: 2, hidden: 32}, {name: l, kind: mean_squared_error}]}";

/// Step time, memory, and what a device sends of each kind and array, of 8 workers.
std::vector<double> outcome(const std::string& model, const std::string& strategy) {
  return numbers_from_child(4, [&] {
    PlannedRun run(8, model, "{all_reduce: ring, bucket: 1 KiB, " + strategy + "}", 4, 2);
    double bytes = 0;
    const CallsPerStep calls = *calls_per_step(run.plan);
    for (std::size_t i = 0; i < run.plan.collectives.size(); ++i)
      bytes += calls.collectives[i] * run.plan.collectives[i].buffer.size.value;
    return std::vector<double>{run.last_step(), run.plan.memory.total().value, bytes,
                               static_cast<double>(run.plan.partition.form)};
  });
}

Plan planned(const std::string& options, const std::string& model = kMaps) {
  return PlannedRun(8, model, "{kind: synchronous, all_reduce: ring, " + options + "}", 4).plan;
}

}  // namespace

TEST_CASE("each short word is its mesh, to the bit", "[sim][mesh]") {
  struct Pair {
    const std::string* model;
    std::string word, mesh;
  };
  for (const Pair& pair :
       {Pair{&kMaps, "kind: spatial, split: 2", "mesh: {spatial: 2}"},
        Pair{&kMaps, "kind: spatial, split: [2, 2], whole_from: f, batch_norm: all, accumulation: 2",
             "mesh: {spatial: [2, 2]}, whole_from: f, batch_norm: all, accumulation: 2"},
        Pair{&kMaps, "kind: spatial, split: 4, halo_overlap: false, overlap: false, recompute: true",
             "mesh: {spatial: 4}, halo_overlap: false, overlap: false, recompute: true"},
        Pair{&kMaps, "kind: filter_parallel, ways: 4", "mesh: {filter: 4}"},
        Pair{&kMaps, "kind: filter_parallel, ways: 2, recompute: true, accumulation: 2",
             "mesh: {filter: 2}, recompute: true, accumulation: 2"},
        Pair{&kBlocks, "kind: tensor, ways: 4", "mesh: {tensor: 4}"},
        Pair{&kBlocks, "kind: tensor, ways: 2, recompute: true, accumulation: 2, precision: mixed",
             "mesh: {tensor: 2}, recompute: full, accumulation: 2, precision: mixed, fp32_gradients: false"},
        Pair{&kBlocks, "kind: mixture_of_experts, ways: 4, experts: 8, top: 1, every: 2, capacity_factor: 2",
             "mesh: {expert: 4}, experts: 8, top: 1, every: 2, capacity_factor: 2"},
        Pair{&kExperts, "kind: mixture_of_experts, ways: 2", "mesh: {expert: 2}"},
        Pair{&kMaps, "kind: zero, stage: 1, overlap: false", "shard: optimizer, overlap: false"},
        Pair{&kMaps, "kind: zero, stage: 2, overlap: false, accumulation: 2, precision: mixed",
             "shard: gradients, overlap: false, accumulation: 2, precision: mixed, fp32_gradients: false"},
        Pair{&kBlocks, "kind: zero, stage: 3, recompute: true, accumulation: 2",
             "shard: parameters, recompute: full, accumulation: 2"},
        Pair{&kBlocks, "kind: pipeline, stages: 2, tensor: 2, micro_batches: 4, zero: 1",
             "mesh: {pipeline: 2, tensor: 2}, accumulation: 4, shard: optimizer"}}) {
    CAPTURE(pair.word);
    CHECK(outcome(*pair.model, pair.word) == outcome(*pair.model, "kind: synchronous, " + pair.mesh));
  }
}

TEST_CASE("devices that share a sample partition state as other copies do", "[mesh]") {
  using Kind = Collective::Kind;
  const Plan halves = planned("mesh: {spatial: 2}, shard: parameters, accumulation: 2"),
             whole = planned("mesh: {data: 8}, shard: parameters, accumulation: 2"),
             kept = planned("mesh: {spatial: 2}, accumulation: 2");
  for (const auto& [kind, array] :
       {std::pair{Kind::all_gather, Array::parameters}, std::pair{Kind::reduce_scatter, Array::gradients}})
    CHECK(carried(halves, kind, array) == carried(whole, kind, array));
  CHECK(carried(halves, Kind::exchange, Array::activations) ==
        carried(kept, Kind::exchange, Array::activations));
  CHECK(carried(halves, Kind::exchange, Array::activations) > 0);
  CHECK(halves.memory.optimizer_state.value == kept.memory.optimizer_state.value / 8);
  CHECK(halves.memory.activations.value < whole.memory.activations.value);
  CHECK(halves.samples_a_step == whole.samples_a_step / 2);
  // The devices of a sample are neighbours, or as far apart as the order says.
  const Plan apart = planned("mesh: {spatial: 2}, order: [data, context, tensor, pipeline]");
  CHECK(apart.endpoints[RankId(1)] == 4);
  CHECK(halves.endpoints[RankId(1)] == 1);
}

TEST_CASE("filters beside data partition state over the replicas", "[mesh]") {
  using Kind = Collective::Kind;
  const std::string model =
      "{name: dense, source: s, input: [64], layers: [{name: a, kind: dense, units: 64, bias: false}, {name: "
      "b, kind: dense, units: 64, bias: false}, {name: l, kind: mean_squared_error}]}";
  const Plan sharded = planned("mesh: {filter: 2}, shard: gradients, accumulation: 2", model),
             kept = planned("mesh: {filter: 2}, accumulation: 2", model);
  const double own = 4 * 2 * 64 * 64 / 2.0;  // bytes of a device's filters
  CHECK(carried(kept, Kind::all_reduce, Array::gradients) == own);
  CHECK(carried(sharded, Kind::reduce_scatter, Array::gradients) == 2 * own);
  CHECK(carried(sharded, Kind::all_gather, Array::parameters) == own);
  CHECK(carried(sharded, Kind::all_gather, Array::activations) ==
        carried(kept, Kind::all_gather, Array::activations));
  CHECK(sharded.memory.optimizer_state.value == kept.memory.optimizer_state.value / 4);
  CHECK(sharded.partition.simulated_only == "shard beside parts of samples or filters");
}

TEST_CASE("stages of divided samples send a device's part of the boundary", "[sim][mesh]") {
  const std::string strategy =
      "{kind: synchronous, mesh: {pipeline: 2, spatial: 2}, split_points: [b], batch_norm: local, "
      "halo_overlap: false, bucket: model, overlap: false, all_reduce: ring}";
  const double step = numbers_from_child(
      1, [&] { return std::vector<double>{PlannedRun(4, kMaps, strategy, 4, 2).last_step()}; })[0];
  const double latency = 1e-6, bandwidth = 1e9, row = 4 * 4 * 16, map = 4 * 4 * 8 * 256;
  const auto packed = [](double bytes) { return 4 * bytes / (0.70 * 1e12); };
  // One row of halos: of a and b forward, of b backward; a has no error signal to compute.
  const double halos = 3 * latency + (4 + 8 + 8) * row / bandwidth + packed((4 + 8 + 8) * row);
  const double boundary = 2 * (latency + map / 2 / bandwidth);
  const double shares = 2 * (latency + map / 2 / bandwidth);  // all-to-all of halves of what a device has
  const auto sum = [&](double bytes) { return 2 * (latency + bytes / 2 / bandwidth); };
  // The first stage ends last, with its sum of the gradients of a and n over two devices.
  CHECK(step == Approx(6 * 0.030 + 2 * 0.001 + halos + boundary + shares + sum(4.0 * (8 * 4 * 9 + 2 * 8)))
                    .epsilon(1e-9));
}

TEST_CASE("axes that cannot be together are refused with the reason", "[mesh][errors]") {
  const auto refused = [](const std::string& options, const std::string& message,
                          const std::string& model = kMaps) {
    CHECK_THROWS_WITH(PlannedRun(8, model, "{kind: synchronous, " + options + "}", 4),
                      "strategy.yaml:1:" + message);
  };
  refused("mesh: {spatial: 2, filter: 2}",
          "37: strategy.mesh.spatial: not valid with mesh.filter: halos are rows of whole layers");
  refused("mesh: {spatial: 2, tensor: 2}",
          "37: strategy.mesh.spatial: not valid with mesh.tensor: halos are rows of whole layers");
  refused("mesh: {spatial: 2, context: 2}",
          "37: strategy.mesh.spatial: not valid with mesh.context: a sample has positions or tokens");
  refused("mesh: {spatial: 2, expert: 2}",
          "37: strategy.mesh.spatial: not valid with mesh.expert: experts divide tokens");
  refused(
      "mesh: {filter: 2, tensor: 2}",
      "36: strategy.mesh.filter: not valid with mesh.tensor: a layer is divided by filters or as a block");
  refused("mesh: {filter: 2, pipeline: 2}",
          "36: strategy.mesh.filter: not valid with mesh.pipeline: a later stage would read filters that it "
          "has not gathered");
  refused("mesh: {filter: 2}, sequence_parallel: true",
          "36: strategy.mesh.filter: not valid with sequence_parallel: the layers have no tokens");
  refused("mesh: {filter: 2}",
          "36: strategy.mesh.filter: layer block0_norm1 (layer_norm) mixes features and cannot be "
          "partitioned by filters",
          kBlocks);
  refused("mesh: {spatial: [2, 2], data: 4}",
          "27: strategy.mesh: pipeline 1 x data 4 x spatial 4 x tensor 1 are 16 devices, not the 8 workers");
  refused("mesh: {data: 8}, whole_from: z",
          "50: strategy.whole_from: expected a layer up to d, the first "
          "that mixes all positions, got \"z\"");
}

}  // namespace stepcast::short_words_test
