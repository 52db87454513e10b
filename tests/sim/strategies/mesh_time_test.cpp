#include <catch2/catch.hpp>

#include "models/partition/layer_partition.hpp"
#include "strategies/mesh/stage_plan.hpp"
#include "tests/sim/carried_bytes.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/planned_run.hpp"

namespace stepcast::mesh_time_test {

namespace {

const std::string kBlocks =
    "{name: blocks, source: s, transformer_stack: {layers: 4, width: 64, heads: 4, sequence: 32, vocabulary: "
    "100}}";

/// Two blocks with four experts of 128 hidden units, of which a token visits two.
const std::string kExperts =
    "{name: experts, source: s, input: [32], layers: [{name: tokens, kind: embedding, rows: 100, columns: "
    "64}, {repeat: 2, name: block, layers: [{name: qkv, kind: dense, units: 192, bias: false}, {name: "
    "attention, kind: attention, heads: 4}, {name: projection, kind: dense, units: 64, bias: false}, {name: "
    "norm, kind: rms_norm}, {name: experts, kind: experts, experts: 4, top: 2, hidden: 128}]}, {name: "
    "vocabulary, kind: dense, units: 100, bias: false}, {name: loss, kind: softmax_cross_entropy}]}";

constexpr double kTokens = 32, kWidth = 64, kLayers = 4;  // of kBlocks

/// Step time and memory of a strategy.
std::vector<double> outcome(const std::string& strategy, int workers = 8, int batch = 2,
                            const std::string& model = kBlocks, Folding fold = Folding::automatic) {
  return numbers_from_child(2, [&] {
    PlannedRun run(workers, model, strategy, batch, 2);
    run.simulation.fold = fold;
    return std::vector<double>{run.last_step(), run.plan.memory.total().value};
  });
}

double gathered(const Plan& plan) {
  return carried(plan, Collective::Kind::all_gather, Array::parameters);
}
double scattered(const Plan& plan) {
  return carried(plan, Collective::Kind::reduce_scatter, Array::gradients);
}

double parameters(const Model& model, int tensor) {
  return trainable_parameters(shard_tensor(model, tensor).part);
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

TEST_CASE("a mesh of data alone is plain data parallelism", "[sim][mesh]") {
  const std::string bucket = ", bucket: 60 kB, all_reduce: ring";
  CHECK(outcome("{kind: synchronous, mesh: {data: 8}" + bucket + "}")[0] ==
        Approx(outcome("{kind: synchronous" + bucket + "}")[0]).epsilon(1e-9));
}

TEST_CASE("without overlap a pass waits for each scatter of gradients", "[sim][mesh]") {
  for (const std::string& shard :
       {std::string("gradients"), std::string("parameters"), std::string("parameters, shard_within: 4")}) {
    CAPTURE(shard);
    const auto outcome_of = [&](const std::string& more) {
      return numbers_from_child(2, [&] {
        PlannedRun run(8, kBlocks,
                       "{kind: synchronous, accumulation: 2, bucket: 60 kB, shard: " + shard + more, 4, 2);
        return std::vector<double>{run.last_step(), scattered(run.plan)};
      });
    };
    const auto waits = outcome_of(", overlap: false}"), overlaps = outcome_of("}"),
               slowed = outcome_of(", overlap: false, compute_slowdown: 2}");
    CHECK(waits[0] > overlaps[0]);
    CHECK(waits[1] == overlaps[1]);
    if (shard == "gradients") CHECK(slowed[0] == waits[0]);  // nothing is computed meanwhile
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

TEST_CASE("sequence parallelism gathers and scatters what tensor parallelism sums", "[sim][mesh]") {
  const auto planned = [](const std::string& more) {
    const PlannedRun run(8, kBlocks, "{kind: synchronous, mesh: {tensor: 4}" + more + "}", 4);
    return run.plan;
  };
  const Plan tensor = planned(""), sequence = planned(", sequence_parallel: true");
  const double tokens = 4 * 4 * kTokens, whole = tokens * kWidth;  // bytes of four samples
  using Kind = Collective::Kind;
  CHECK(carried(tensor, Kind::all_reduce, Array::activations) == Approx(2 * kLayers * whole + 2 * tokens));
  CHECK(carried(sequence, Kind::all_reduce, Array::activations) == Approx(2 * tokens));  // of the loss
  CHECK(carried(sequence, Kind::reduce_scatter, Array::activations) == Approx(2 * kLayers * whole));
  // Forward, and again for the gradients of weights; the vocabulary has no layer after it.
  CHECK(carried(sequence, Kind::all_gather, Array::activations) == Approx(2 * (2 * kLayers + 1) * whole));
  CHECK(carried(sequence, Kind::all_gather, Array::errors) == Approx(2 * kLayers * whole));
  CHECK(carried(sequence, Kind::reduce_scatter, Array::errors) == Approx((2 * kLayers + 1) * whole));
  const Plan one = PlannedRun(8, kBlocks, "{kind: synchronous, mesh: {data: 8}}", 4).plan;
  CHECK(4 * sequence.memory.activations.value == Approx(one.memory.activations.value).epsilon(1e-3));
  CHECK(4 * tensor.memory.activations.value > 1.2 * one.memory.activations.value);
}

TEST_CASE("context parallelism sends keys and values, or heads", "[sim][mesh]") {
  const auto planned = [](const std::string& how) {
    const PlannedRun run(8, kBlocks, "{kind: synchronous, mesh: {context: 4}, context_exchange: " + how + "}",
                         4);
    return run.plan;
  };
  const double whole = 4 * 4 * kTokens * kWidth;  // bytes of the keys of four samples
  using Kind = Collective::Kind;
  const Plan ring = planned("ring"), gather = planned("all_gather"), heads = planned("all_to_all");
  CHECK(carried(ring, Kind::all_gather, Array::activations) == Approx(kLayers * 2 * whole));
  CHECK(carried(ring, Kind::all_gather, Array::errors) == Approx(kLayers * 4 * whole));
  CHECK(carried(gather, Kind::all_gather, Array::activations) == Approx(kLayers * 2 * whole));
  CHECK(carried(gather, Kind::all_gather, Array::errors) == Approx(kLayers * 2 * whole));
  CHECK(carried(gather, Kind::reduce_scatter, Array::errors) == Approx(kLayers * 2 * whole));
  CHECK(carried(heads, Kind::all_to_all, Array::activations) == Approx(kLayers * (3 + 1) * whole));
  CHECK(carried(heads, Kind::all_to_all, Array::errors) == Approx(kLayers * (3 + 1) * whole));
  const Plan one = PlannedRun(8, kBlocks, "{kind: synchronous, mesh: {data: 8}}", 4).plan;
  // Keys and values are gathered during attention. After it one step of the ring of fp32 gradients is left:
  // the keys and values of a device, 4 bytes each, which an all-gather of 4 / 3 of them takes 3 steps for.
  const Plan pass = planned("pass_kv");
  CHECK(carried(pass, Kind::all_gather, Array::activations) == Approx(kLayers * 2 * whole));
  CHECK(carried(pass, Kind::all_gather, Array::errors) == Approx(kLayers * (2 + 4.0 / 3) * whole));
  for (const Plan& plan : {ring, gather, heads, pass}) {
    CHECK(4 * plan.memory.activations.value == Approx(one.memory.activations.value).epsilon(1e-3));
    CHECK(carried(plan, Kind::all_reduce, Array::gradients) ==
          carried(one, Kind::all_reduce, Array::gradients));
    CHECK(plan.samples_a_step == 4 * 2);
  }
}

TEST_CASE("experts beside data are mixture_of_experts, and lie beside all other axes", "[sim][mesh]") {
  const std::string bucket = ", bucket: model, all_reduce: ring}";
  CHECK(outcome("{kind: synchronous, mesh: {expert: 4}" + bucket, 8, 2, kExperts)[0] ==
        Approx(outcome("{kind: mixture_of_experts, ways: 4" + bucket, 8, 2, kExperts)[0]).epsilon(1e-9));
  const auto planned = [](const std::string& mesh) {
    const PlannedRun run(8, kExperts, "{kind: synchronous, shard: optimizer, mesh: {" + mesh + "}", 2);
    return run.plan;
  };
  using Kind = Collective::Kind;
  const double rows = 2 * 4 * kTokens * 2 * 64;  // bytes of the rows of two samples that experts compute
  const Plan plain = planned("expert: 4}"), tensor = planned("expert: 4, tensor: 2}"),
             sequence = planned("expert: 4, tensor: 2}, sequence_parallel: true");
  CHECK(carried(plain, Kind::all_to_all, Array::activations) == Approx(2 * 2 * 4 * rows));
  CHECK(carried(tensor, Kind::all_to_all, Array::activations) == Approx(2 * 2 * 4 * rows));
  CHECK(carried(sequence, Kind::all_to_all, Array::activations) == Approx(2 * 2 * 4 * rows / 2));
  // Eight devices have one copy of the optimizer's state of the network, but for the routers.
  const Model model = PlannedRun(1, kExperts, "{kind: synchronous}").model;
  CHECK(8 * plain.memory.optimizer_state.value == Approx(4 * parameters(model, 1)).epsilon(0.02));
}

TEST_CASE("an optimizer on the host takes its memory's bandwidth and a copy, and none of the device's",
          "[sim][mesh]") {
  const std::string mesh = "{kind: synchronous, precision: mixed, shard: gradients, accumulation: 2";
  const auto on_device = outcome(mesh + "}", 2);
  const auto on_host = outcome(mesh + ", offload: optimizer, host_memory: 30 MB/s, host_link: 2 MB/s}", 2);
  const YamlNode node = parse_yaml(kBlocks, "m");
  const Model model = read_model(YamlValue(node, ""));
  const double share = static_cast<double>(trainable_parameters(model)) / 2;
  // 30 B of host memory and 2 B of the link an element: 1 us each. Each layer's update took 1 ms, 2 devices
  // share it.
  const double update = 0.001 / 2 * static_cast<double>(model.layers.size());
  CHECK(on_host[0] - on_device[0] == Approx(2e-6 * share - update).epsilon(0.01));
  CHECK(on_device[1] - on_host[1] == Approx((4 + 4) * share).epsilon(1e-6));  // master weights, momentum
  CHECK_THROWS_WITH(PlannedRun(2, kBlocks, mesh + ", host_link: 2 MB/s}", 2),
                    Catch::Contains("strategy.host_link: only valid with offload"));
  CHECK_THROWS_WITH(PlannedRun(2, kBlocks, mesh + ", offload: activations, host_memory: 2 MB/s}", 2),
                    Catch::Contains("strategy.host_memory: only valid with offload: optimizer"));
}

TEST_CASE("activations on the host leave those of two blocks, and each pass takes as long as their copies",
          "[sim][mesh]") {
  const std::string mesh = "{kind: synchronous, mesh: {pipeline: 1}, accumulation: 3";
  const auto copied = [&](const std::string& link) {
    return outcome(mesh + ", offload: activations, host_link: " + link + "}", 1, 6);
  };
  const auto kept = outcome(mesh + "}", 1, 6), fast = copied("1 TB/s"), slow = copied("200 kB/s"),
             slower = copied("100 kB/s");
  // Two samples of outputs of 18 widths, and the scores of 4 heads, in 4 bytes.
  const double block = 2 * 4 * (kTokens * 18 * kWidth + 4 * kTokens * kTokens);
  CHECK(kept[1] - fast[1] == Approx((kLayers - 2) * block));
  CHECK(fast[0] == Approx(kept[0]).epsilon(1e-9));
  // Three micro-batches copy four blocks twice.
  CHECK(slower[0] - slow[0] == Approx(3 * kLayers * 2 * block * (1 / 1e5 - 1 / 2e5)).epsilon(1e-6));
}

TEST_CASE("all devices wait for the busiest experts: imbalance multiplies their rows", "[sim][mesh]") {
  const auto rows = [](const std::string& more) {
    const PlannedRun run(8, kExperts, "{kind: synchronous, mesh: {expert: 4}" + more + "}", 2);
    return carried(run.plan, Collective::Kind::all_to_all, Array::activations);
  };
  CHECK(rows(", imbalance: 1.5") == Approx(1.5 * rows("")));
  CHECK(rows(", imbalance: 1.5") == rows(", capacity_factor: 1.5"));
  CHECK_THROWS_WITH(rows(", imbalance: 2, capacity_factor: 2"),
                    Catch::Contains("strategy.imbalance: not valid with capacity_factor, which bounds it"));
}

TEST_CASE("DualPipe hides the all-to-alls of experts, and sums gradients over both copies of the layers",
          "[sim][mesh]") {
  const std::string mesh =
      "{kind: synchronous, mesh: {pipeline: 2, data: 2, expert: 2}, accumulation: 8, split_points: "
      "[block1_qkv], schedule: ";
  const auto planned = [&](const std::string& schedule) {
    return numbers_from_child(3, [&] {
      PlannedRun run(4, kExperts, mesh + schedule, 8, 2);
      double summed = 0, crossed = 0;
      for (const Collective& one : run.plan.collectives) {
        const int ranks = communicator_of(run.plan, one).size;
        if (one.kind == Collective::Kind::all_reduce && one.buffer.array == Array::gradients)
          summed += one.buffer.size.value * ranks;
        if (one.kind == Collective::Kind::all_to_all)
          crossed = std::max(crossed, one.buffer.size.value / ranks);
      }
      return std::vector<double>{run.last_step(), summed, crossed};
    });
  };
  const std::vector<double> dual = planned("dual_pipe}"), split = planned("zero_bubble}");
  CHECK(dual[0] < split[0]);
  for (const char* more : {"dual_pipe, overlap: false}", "dual_pipe, shard: optimizer}"})
    CHECK(planned(more)[0] > 0);  // both copies start their sums and gathers in one order
  // The core of attention once more, 10 ms, for each of 8 micro-batches.
  const double more = planned("dual_pipe, recompute: selective}")[0] - dual[0];
  CHECK(more > 0.99 * 8 * 0.010);
  CHECK(more < 1.5 * 8 * 0.010);
  // Twice as many ranks sum each gradient.
  CHECK(dual[1] >= 2 * split[1]);
  CHECK(dual[2] == split[2]);
  CHECK(split[2] == 4.0 * kTokens * kWidth * 2);
}

TEST_CASE("all axes go together, folded and not", "[sim][mesh]") {
  const std::string all =
      "{kind: synchronous, mesh: {pipeline: 2, context: 2, tensor: 2, expert: 2}, sequence_parallel: true, "
      "shard: parameters, accumulation: 2, recompute: true, all_reduce: ring}";
  const double folded = outcome(all, 16, 2, kExperts, Folding::always)[0];
  CHECK(folded > 0);
  CHECK(outcome(all, 16, 2, kExperts, Folding::never)[0] == Approx(folded).epsilon(0.01));
}

TEST_CASE("the units of FSDP are the blocks of a network and the layers between", "[mesh]") {
  const PlannedRun run(1, kBlocks, "{kind: synchronous}");
  MeshOptions options;
  options.blocks = true;
  const int layers = run.model.layers.size();
  const auto units = sharded_units(run.model, {0, layers}, options);
  CHECK(units.size() == 5);  // four blocks and the head
  CHECK(units.front().last == layers);
  for (std::size_t i = 1; i < units.size(); ++i) CHECK(units[i].last == units[i - 1].first);
  CHECK(units.back().first == 0);
}

TEST_CASE("a mesh that kernels cannot run says why", "[mesh]") {
  const auto why = [](const std::string& options, const std::string& model = kBlocks) {
    const PlannedRun run(8, model, "{kind: synchronous, all_reduce: ring, " + options + "}", 4);
    CHECK(run.plan.no_arithmetic.empty());
    return run.plan.partition.simulated_only;
  };
  const std::string within = "shard: parameters, shard_within: 2";
  CHECK(why("shard: parameters, recompute: true, accumulation: 2") == "");
  CHECK(why("mesh: {pipeline: 2, tensor: 2}, split: blocks, shard: parameters, recompute: {every: 2}") == "");
  CHECK(why(within) == "");
  CHECK(why(within + ", accumulation: 2, reshard_after_forward: false") == "");
  CHECK(why(within + ", accumulation: 2") == "shard_within with accumulation and reshard_after_forward");
  CHECK(why(within + ", channels: 2") == "shard_within with channels");
  CHECK(why(within + ", mesh: {tensor: 2}") == "");
  CHECK(why("mesh: {context: 2}") ==
        "context_exchange: ring, where attention begins with the keys that have arrived");
  CHECK(why("mesh: {context: 2}, context_exchange: all_to_all").empty());
  CHECK(why("mesh: {expert: 2}", kExperts) == "");
  CHECK(why("mesh: {tensor: 2}, sequence_parallel: true").empty());
  CHECK(why("mesh: {tensor: 2}, sequence_parallel: true, shard: parameters") ==
        "sequence_parallel with shard: gradients or parameters");
  CHECK(why("offload: optimizer, host_memory: 1 GB/s, host_link: 1 GB/s") == "offload: optimizer");
  CHECK(why("offload: activations, host_link: 1 GB/s") == "offload: activations");
  CHECK(why("shard: parameters, recompute: operators") == "recomputation of parts of a layer");
  CHECK(why("shard: parameters, precision: mixed") == "activations of 2 bytes");
}

TEST_CASE("a mesh that cannot be is refused with place and reason", "[sim][mesh][errors]") {
  const auto refused = [](const std::string& options, const std::string& message) {
    CHECK_THROWS_WITH(PlannedRun(8, kBlocks, "{kind: synchronous, " + options + "}", 4),
                      "strategy.yaml:1:" + message);
  };
  refused("mesh: {pipeline: 3}",
          "27: strategy.mesh: pipeline 3 x data 2 x context 1 x tensor 1 are 6 devices, not the 8 workers");
  refused("mesh: {data: 2, tensor: 2}",
          "27: strategy.mesh: pipeline 1 x data 2 x context 1 x tensor 2 are 4 devices, not the 8 workers");
  refused("mesh: {pipeline: 65536, tensor: 65536}",  // 2^32, of which 32 bits hold nothing
          "27: strategy.mesh: pipeline 65536 x data 1 x context 1 x tensor 65536 are 4294967296 devices, not "
          "the 8 workers");
  CHECK_THROWS_WITH(PlannedRun(8, kBlocks, "{kind: pipeline, stages: 65536, tensor: 65536}", 4),
                    "strategy.yaml:1:26: strategy.stages: 8 workers cannot form groups of 4294967296; give a "
                    "divisor");
  refused(
      "mesh: {tensor: 8}",
      "36: strategy.mesh.tensor: layer block0_attention has 4 heads, which 8 devices cannot share evenly");
  refused("shard: optimizer, shard_within: 4",
          "53: strategy.shard_within: only valid with shard: parameters");
  refused("shard: parameters, shard_within: 3",
          "54: strategy.shard_within: 8 devices of data x context cannot form groups of 3; give a divisor");
  refused("shard: parameters, shard_within: 1",
          "54: strategy.shard_within: one device has nobody to partition with; give at least 2, or shard: "
          "none");
  refused("mesh: {expert: 3}",
          "36: strategy.mesh.expert: 8 devices of data x context cannot form groups of 3; give a divisor");
  refused("mesh: {expert: 2}", "1: strategy.experts: missing (expected experts a layer)");
  refused(
      "mesh: {context: 8}, context_exchange: all_to_all",
      "37: strategy.mesh.context: layer block0_attention has 4 heads of keys on a device, which 8 devices "
      "cannot share evenly");
  refused("mesh: {expert: 2}, shard: parameters, shard_within: 4",
          "73: strategy.shard_within: not valid with mesh.expert, whose devices partition in groups of their "
          "own");
  refused("reshard_after_forward: true",
          "44: strategy.reshard_after_forward: only valid with shard: parameters");
  refused("shard: optimizer, host_work: 1 ms",
          "50: strategy.host_work: not valid with a mesh of devices (mesh, shard)");
  refused("shard: optimizer, schedule: interleaved, chunks: 2",
          "49: strategy.schedule: interleaved needs stages >= 2, got 1");
}

TEST_CASE("a host that waits at checkpoints hides no time of the layers after the blocks", "[sim][mesh]") {
  const auto step = [](const std::string& options, double host) {
    return numbers_from_child(1, [&] {
      PlannedRun run(1, kBlocks, "{kind: synchronous, mesh: {data: 1}, recompute: true" + options + "}", 2);
      Workload& workload = run.plan.workloads.front();
      const int head = kSegmentsPerLayer * run.model.blocks.back().last;
      workload.host = workload.median;
      for (std::size_t i = 0; i < workload.host.size(); ++i) {
        const double factor = static_cast<int>(i) < head ? host : 0;
        workload.host[i] = {factor * workload.host[i].forward, factor * workload.host[i].backward, 0};
      }
      return std::vector<double>{run.last_step()};
    })[0];
  };
  const std::string waits = ", synchronize_checkpoints: true";
  CHECK(step(waits, 0) == Approx(step("", 0)).epsilon(1e-9));
  // The last norm, the vocabulary and the loss take 10 ms forward and 20 ms backward each.
  CHECK(step(waits, 1.5) - step("", 1.5) > 0.9 * 3 * 0.030);
}

TEST_CASE("Transformer Engine keeps a tensor of 2 bytes for each shape of weight", "[mesh]") {
  const auto workspace = [](const std::string& precision, bool fused) {
    PlannedRun run(2, kBlocks, "{kind: synchronous}");
    Setting setting{run.model, run.device, run.platform, test::first_endpoints(2)};
    setting.batch_per_worker = YamlValue(run.batch_text, "batch_per_worker");
    setting.part_trace = [](const PartModel& part) { return PlannedRun::even_trace(*part.model); };
    setting.memory.framework = MemoryOptions::Framework::pytorch;
    setting.memory.workspace = Bytes{0};
    if (fused) setting.memory.gradient_sums = KernelChoice::GradientSums::fused;
    const YamlNode text =
        parse_yaml("{kind: synchronous, mesh: {data: 2}, precision: " + precision + "}", "s.yaml");
    return synchronous_over_mesh().plan(YamlValue(text, "strategy"), setting).memory.workspace.value;
  };
  // qkv, projection, expand, contract and the vocabulary; of four blocks once.
  const double shapes = 64.0 * (3 * 64 + 64 + 256 + 256 + 100);
  CHECK(workspace("mixed", true) - workspace("mixed", false) == 2 * shapes);
  CHECK(workspace("f32", true) == workspace("f32", false));
}

TEST_CASE("derived backward passes have the sums of micro-batches", "[mesh]") {
  // What the backward passes of all layers gain by four micro-batches, in updates of a layer (five arrays).
  const auto gain = [](const std::string& more, Trace::Kind kind, bool fused = false) {
    PlannedRun run(2, kBlocks, "{kind: synchronous}", 4);
    if (fused) {
      run.device.kernels = KernelShares{};
      run.device.kernels->choice.precision = KernelChoice::Precision::bf16;
      run.device.kernels->choice.gradient_sums = KernelChoice::GradientSums::fused;
    }
    Setting setting{run.model, run.device, run.platform, test::first_endpoints(2)};
    setting.batch_per_worker = YamlValue(run.batch_text, "batch_per_worker");
    setting.part_trace = [&](const PartModel& part) {
      Trace trace = PlannedRun::even_trace(*part.model);
      trace.kind = kind;
      return trace;
    };
    const auto backward = [&](int micro_batches) {
      const YamlNode text = parse_yaml(
          fmt::format("{{kind: synchronous, mesh: {{data: 2}}, accumulation: {}{}}}", micro_batches, more),
          "s.yaml");
      const Plan plan = synchronous_over_mesh().plan(YamlValue(text, "strategy"), setting);
      double sum = 0;
      for (const LayerSeconds& one : plan.workloads[0].median) sum += one.backward;
      return sum;
    };
    return (backward(4) - backward(1)) / run.model.layers.size() / 0.001;
  };
  const auto derived = Trace::Kind::derived;
  CHECK(gain("", derived) == Approx(3 * 0.75 / 5));
  CHECK(gain(", precision: mixed, fp32_gradients: false", derived) == Approx(3 * 0.75 / 5 / 2));
  CHECK(gain(", shard: gradients", derived) == Approx(3 * 0.75 / 5 / 2));
  CHECK(gain(", precision: mixed", derived, true) == 0);
  CHECK(gain("", Trace::Kind::captured) == 0);
}

}  // namespace stepcast::mesh_time_test
