#include <catch2/catch.hpp>

#include "models/partition/layer_partition.hpp"
#include "sim/fidelity/run_cost.hpp"
#include "strategies/mesh/pipeline_stage.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/planned_run.hpp"

namespace stepcast::mesh_time_test {

namespace {

const std::string kBlocks =
    "{name: blocks, source: s, transformer_stack: {layers: 4, width: 64, heads: 4, sequence: 32, vocabulary: "
    "100}}";

/// Step time and memory of a strategy.
std::vector<double> outcome(const std::string& strategy, int workers = 8, int batch = 2) {
  return numbers_from_child(2, [&] {
    PlannedRun run(workers, kBlocks, strategy, batch, 2);
    return std::vector<double>{run.last_step(), run.plan.memory.total().value};
  });
}

/// The bytes of one rank's buffers in all collectives of a step of this kind and array.
double carried(const Plan& plan, Collective::Kind kind, Array array) {
  const CallsPerStep calls = *calls_per_step(plan);
  double sum = 0;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& one = plan.collectives[i];
    if (one.kind == kind && one.buffer.array == array) sum += calls.collectives[i] * one.buffer.size.value;
  }
  return sum;
}

double gathered(const Plan& plan) {
  return carried(plan, Collective::Kind::all_gather, Array::parameters);
}
double scattered(const Plan& plan) {
  return carried(plan, Collective::Kind::reduce_scatter, Array::gradients);
}

double parameters(const Model& model, int tensor) {
  return static_cast<double>(trainable_parameters(shard_tensor(model, tensor).part));
}

}  // namespace

TEST_CASE("a mesh of stages, replicas and tensor is a pipeline", "[sim][mesh]") {
  for (const std::string& more :
       {std::string(), std::string(", recompute: true"), std::string(", schedule: interleaved, chunks: 2")}) {
    const auto pipeline =
        outcome("{kind: pipeline, stages: 2, tensor: 2, micro_batches: 2, zero: 1" + more + "}");
    const auto mesh = outcome(
        "{kind: synchronous, mesh: {pipeline: 2, tensor: 2}, accumulation: 2, shard: optimizer" + more + "}");
    CHECK(mesh == pipeline);
  }
}

TEST_CASE("a mesh of data alone is plain data parallelism, and with parameters sharded ZeRO's stage 3",
          "[sim][mesh]") {
  const std::string bucket = ", bucket: 60 kB, all_reduce: ring";
  const auto seconds = [&](const std::string& options) { return Approx(outcome(options)[0]).epsilon(1e-9); };
  CHECK(outcome("{kind: synchronous, mesh: {data: 8}" + bucket + "}")[0] ==
        seconds("{kind: synchronous" + bucket + "}"));
  for (const std::string& again : {std::string(), std::string(", recompute: true")}) {
    CHECK(outcome("{kind: synchronous, shard: parameters" + bucket + again + "}")[0] ==
          seconds("{kind: zero, stage: 3" + bucket + again + "}"));
  }
}

TEST_CASE("sharded parameters are gathered before each pass and their gradients scattered", "[sim][mesh]") {
  for (const int tensor : {1, 2, 4}) {
    const PlannedRun run(8, kBlocks,
                         "{kind: synchronous, shard: parameters, mesh: {tensor: " + std::to_string(tensor) +
                             "}, accumulation: 2}",
                         4);
    const double all = 4 * parameters(run.model, tensor);
    CHECK(gathered(run.plan) == Approx(2 * 2 * all));  // two micro-batches, two passes
    CHECK(scattered(run.plan) == Approx(2 * all));
  }
  const PlannedRun once(
      8, kBlocks, "{kind: synchronous, shard: parameters, accumulation: 2, reshard_after_forward: false}", 4);
  CHECK(gathered(once.plan) == Approx(4 * parameters(once.model, 1)));
  CHECK(scattered(once.plan) == Approx(4 * parameters(once.model, 1)));
  const PlannedRun mixed(8, kBlocks, "{kind: synchronous, shard: parameters, precision: mixed}", 4);
  CHECK(gathered(mixed.plan) == Approx(2 * 2 * parameters(mixed.model, 1)));
  CHECK(scattered(mixed.plan) == Approx(4 * parameters(mixed.model, 1)));
  const PlannedRun narrow(
      8, kBlocks, "{kind: synchronous, shard: parameters, precision: mixed, fp32_gradients: false}", 4);
  CHECK(scattered(narrow.plan) == Approx(2 * parameters(narrow.model, 1)));
}

TEST_CASE("stages share their parameters too: ZeRO-3 inside pipeline and tensor parallelism", "[sim][mesh]") {
  const PlannedRun run(
      8, kBlocks, "{kind: synchronous, shard: parameters, mesh: {pipeline: 2, tensor: 2}, accumulation: 2}",
      4);
  CHECK(gathered(run.plan) == Approx(2 * 2 * 4 * parameters(run.model, 2)));  // of both stages
  const auto sharded = outcome(
      "{kind: synchronous, shard: parameters, mesh: {pipeline: 2, tensor: 2}, accumulation: 2}", 8, 2);
  CHECK(sharded[0] > 0);
}

TEST_CASE("hybrid sharding scatters in groups and sums the shares over the groups", "[sim][mesh]") {
  const PlannedRun run(8, kBlocks, "{kind: synchronous, shard: parameters, shard_within: 4}", 4);
  const double all = 4 * parameters(run.model, 1);
  CHECK(gathered(run.plan) == Approx(2 * all));
  CHECK(scattered(run.plan) == Approx(all));
  CHECK(carried(run.plan, Collective::Kind::all_reduce, Array::gradients) == Approx(all / 4));
  const PlannedRun whole(8, kBlocks, "{kind: synchronous, shard: parameters}", 4);
  CHECK(run.plan.memory.optimizer_state.value == Approx(2 * whole.plan.memory.optimizer_state.value));
  CHECK(outcome("{kind: synchronous, shard: parameters, shard_within: 4}")[0] > 0);
  CHECK(outcome("{kind: synchronous, shard: parameters, shard_within: 8}") ==
        outcome("{kind: synchronous, shard: parameters}"));
}

TEST_CASE("a device holds its partition, and of FSDP's units two at once", "[sim][mesh]") {
  const auto memory = [](const std::string& options) {
    return PlannedRun(8, kBlocks, "{kind: synchronous, precision: mixed, " + options + "}", 4).plan.memory;
  };
  const PlannedRun model(8, kBlocks, "{kind: synchronous}", 4);
  const double all = parameters(model.model, 1), block = 12 * 64 * 64 + 13 * 64;
  const Memory none = memory("mesh: {data: 8}"), optimizer = memory("shard: optimizer"),
               fsdp = memory("shard: parameters");
  CHECK(none.weights.value == Approx((2 + 4) * all));
  CHECK(none.gradients.value == Approx(4 * all));
  CHECK(optimizer.weights.value == Approx((2 + 4.0 / 8) * all));
  CHECK(optimizer.gradients.value == Approx(4 * all));
  CHECK(fsdp.weights.value == Approx(4 * all / 8));
  CHECK(fsdp.gradients.value == Approx(4 * all / 8 + 2 * block));
  CHECK(fsdp.gathered.value == Approx(2 * 2 * block));
  CHECK(memory("shard: parameters, reshard_after_forward: false").gathered.value == Approx(2 * all));
}

TEST_CASE("the units of FSDP are the blocks of a network and the layers between", "[mesh]") {
  const PlannedRun run(1, kBlocks, "{kind: synchronous}");
  MeshOptions options;
  options.blocks = true;
  const int layers = static_cast<int>(run.model.layers.size());
  const auto units = sharded_units(run.model, {0, layers}, options);
  CHECK(units.size() == 5);  // four blocks and the head
  CHECK(units.front().last == layers);
  for (std::size_t i = 1; i < units.size(); ++i) CHECK(units[i].last == units[i - 1].first);
  CHECK(units.back().first == 0);
}

TEST_CASE("a mesh that cannot be is refused with place and reason", "[sim][mesh][errors]") {
  const auto refused = [](const std::string& options, const std::string& message) {
    CHECK_THROWS_WITH(PlannedRun(8, kBlocks, "{kind: synchronous, " + options + "}", 4),
                      "strategy.yaml:1:" + message);
  };
  refused("mesh: {pipeline: 3}",
          "27: strategy.mesh: pipeline 3 x data 2 x tensor 1 are 6 devices, not the 8 workers");
  refused("mesh: {data: 2, tensor: 2}",
          "27: strategy.mesh: pipeline 1 x data 2 x tensor 2 are 4 devices, not the 8 workers");
  refused(
      "mesh: {tensor: 8}",
      "36: strategy.mesh.tensor: layer block0_attention has 4 heads, which 8 devices cannot share evenly");
  refused("shard: parameters, overlap: false",
          "49: strategy.overlap: false is not valid with shard: parameters, which scatters gradients during "
          "every backward pass");
  refused("shard: optimizer, shard_within: 4",
          "53: strategy.shard_within: only valid with shard: parameters");
  refused("shard: parameters, shard_within: 3",
          "54: strategy.shard_within: 8 devices of the data axis cannot form groups of 3; give a divisor");
  refused("reshard_after_forward: true",
          "44: strategy.reshard_after_forward: only valid with shard: parameters");
  refused("shard: optimizer, host_work: 1 ms",
          "50: strategy.host_work: not valid with a mesh of devices (mesh, shard)");
  refused("shard: optimizer, schedule: interleaved, chunks: 2",
          "49: strategy.schedule: interleaved needs stages >= 2, got 1");
}

}  // namespace stepcast::mesh_time_test
