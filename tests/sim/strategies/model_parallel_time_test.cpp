#include <catch2/catch.hpp>
#include <set>

#include "models/layer_times/trace.hpp"
#include "models/partition/layer_partition.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/plan/setting.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/planned_run.hpp"

namespace stepcast::test {

/// The closed form of a mini-batch of one replica that is partitioned over machines.
struct PartitionedStep {
  /// Time of the machine with the largest part: forward, backward, update, packing of halos.
  Seconds compute;
  int rounds = 0;  ///< rounds of messages, one after the other
  Bytes bytes;     ///< bytes that the busiest machine receives in them
};

inline void add(const std::vector<Exchange>& exchanges, int machines, double sample_bytes,
                PartitionedStep& step) {
  for (const Exchange& exchange : exchanges) {
    const int passes = exchange.kind == Exchange::Kind::all_reduce ? 2 : 1;  // over the ring
    step.rounds += passes * (machines - 1);
    step.bytes += Bytes{passes * sample_bytes * exchange.elements * (machines - 1) / machines};
  }
}

inline void add(const std::vector<HaloMessage>& messages, double sample_bytes, const Device& device,
                PartitionedStep& step) {
  std::set<std::size_t> dimensions;  // exchanged one after the other, both sides at the same time
  for (const HaloMessage& message : messages) dimensions.insert(message.dimension);
  step.rounds += static_cast<int>(dimensions.size());
  const Bytes received{sample_bytes * elements_of(messages)};
  step.bytes += received;
  step.compute += 2 * packing_seconds(device, received);  // of the sent halo, and unpacking
}

/// @returns the device in the middle of the grid, which has the most neighbours
inline int middle_of(const Parts& parts) {
  int device = 0;
  for (const int along : parts) device = device * along + along / 2;
  return device;
}

/// A step takes compute + rounds x latency + bytes / bandwidth on an unshared network, if no exchange is
/// beside work: one message to each side for a halo, machines - 1 rounds for an all-gather or a
/// reduce-scatter of activations.
inline PartitionedStep partitioned_step(const Setting& setting, int machines, std::int64_t batch) {
  const PartitionedModel model = partition(setting.model, machines);
  PartitionedStep step;
  step.compute = step_time(setting.part_trace(
      {&model.sharded.part, std::vector<std::int64_t>(setting.model.layers.size(), batch)}));
  const double sample_bytes = 4 * static_cast<double>(batch);
  const auto halos = device_halos(setting.model, model.spatial, middle_of(model.spatial.parts));
  for (std::size_t i = 0; i < halos.size(); ++i) {
    const LayerExchange& exchange = model.sharded.exchanges[i];
    add(exchange.before_forward, machines, sample_bytes, step);
    add(exchange.after_backward, machines, sample_bytes, step);
    add(halos[i].forward, sample_bytes, setting.device, step);
    add(halos[i].backward, sample_bytes, setting.device, step);
  }
  return step;
}

}  // namespace stepcast::test

namespace stepcast::model_parallel_time_test {

namespace {

constexpr double kLatency = 1e-6, kBandwidth = 1e9;
const auto exactly = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };

/// Two convolutions on maps of 64 x 16 and a loss; halo rows of 4 and 8 channels, 256 and 512 bytes a sample.
const std::string kMaps =
    "{name: maps, source: s, input: [4, 64, 16], layers: [{name: a, kind: convolution, filters: 8, kernel: "
    "3, "
    "pad: 1, bias: false}, {name: b, kind: convolution, filters: 8, kernel: 3, pad: 1, bias: false}, {name: "
    "l, "
    "kind: mean_squared_error}]}";
constexpr double kMapGradients = 4 * (8 * 4 * 9 + 8 * 8 * 9);  // bytes

/// Four dense layers and a loss.
const std::string kDense =
    "{name: dense, source: s, input: [1000], layers: [{name: a, kind: dense, units: 1000, bias: false}, "
    "{name: b, "
    "kind: dense, units: 1000, bias: false}, {name: c, kind: dense, units: 1000, bias: false}, {name: d, "
    "kind: "
    "dense, units: 1000, bias: false}, {name: l, kind: mean_squared_error}]}";
const std::string kBlocks =
    "{name: blocks, source: s, transformer_stack: {layers: 2, width: 64, heads: 4, sequence: 32, vocabulary: "
    "100}}";

double step(int workers, const std::string& model, const std::string& strategy, int batch = 1,
            bool fold = true) {
  return number_from_child([&] {
    PlannedRun run(workers, model, strategy, batch, 2);
    run.simulation.fold = fold ? Folding::always : Folding::never;
    run.simulation.fidelity = Fidelity::message;
    return run.last_step();
  });
}

double jittered(const std::string& model, const std::string& strategy, bool fold) {
  return number_from_child([&] {
    PlannedRun run(8, model, strategy, 4, 3);
    run.simulation.fold = fold ? Folding::always : Folding::never;
    run.simulation.fidelity = Fidelity::coupled;
    run.simulation.noise.jitter = Noise::Jitter::lognormal;
    run.simulation.noise.sigma = 0.1;
    return run.last_step();
  });
}

double ring(int p, double bytes) {
  return 2 * (p - 1) * (kLatency + bytes / p / kBandwidth);
}
double half_ring(int p, double bytes) {
  return ring(p, bytes) / 2;
}

/// The time to pack and unpack halos on the test's device of 1 TB/s: they are read and written before they
/// are sent, and again when they have arrived.
double packing(double bytes) {
  return 4 * bytes / (0.70 * 1e12);
}

constexpr double kLayer = 0.031;  // all passes of a layer
const std::string kAfter = "bucket: model, overlap: false, all_reduce: ring";

}  // namespace

TEST_CASE("with one device a replica, every form of sharing is plain synchronous training", "[sim]") {
  const std::string common = "bucket: 1 B, all_reduce: ring}";
  const double maps = step(4, kMaps, "{kind: synchronous, " + common);
  const double blocks = step(4, kBlocks, "{kind: synchronous, " + common);
  CHECK(step(4, kMaps, "{kind: spatial, split: 1, " + common) == exactly(maps));
  CHECK(step(4, kMaps, "{kind: filter_parallel, ways: 1, " + common) == exactly(maps));
  CHECK(step(4, kMaps, "{kind: model_parallel, machines: 1, " + common) == exactly(maps));
  CHECK(step(4, kMaps, "{kind: pipeline, stages: 1, micro_batches: 1, " + common) == exactly(maps));
  CHECK(step(4, kBlocks, "{kind: tensor, ways: 1, " + common) == exactly(blocks));
}

TEST_CASE("halos take a latency and their bytes, one after the other, when nothing overlaps", "[sim]") {
  const double bytes = 5 * (256 + 2 * 512);
  const double halos = 3 * kLatency + bytes / kBandwidth + packing(bytes);
  CHECK(step(2, kMaps, "{kind: spatial, split: 2, halo_overlap: false, " + kAfter + "}", 5) ==
        exactly(3 * kLayer + halos + ring(2, kMapGradients)));
}

TEST_CASE("a trace at the shape of the part is used as it is", "[sim]") {
  const double bytes = 256 + 2 * 512;
  const double halos = 3 * kLatency + bytes / kBandwidth + packing(bytes);
  CHECK(
      step(2, kMaps, "{kind: spatial, split: 2, halo_overlap: false, part_trace: strips, " + kAfter + "}") ==
      exactly(3 * 0.061 + halos + ring(2, kMapGradients)));
  CHECK_THROWS_WITH(
      PlannedRun(2, kMaps, "{kind: spatial, split: 2, part_trace: strips}", 5),
      "strategy.yaml:1:39: strategy.part_trace: expected a trace of batch 5 (the micro-batch of a "
      "replica), got one of batch 1");
}

TEST_CASE("halos hide behind the interior when they overlap", "[sim]") {
  const double step_seconds = step(2, kMaps, "{kind: spatial, split: 2, " + kAfter + "}", 5);
  const double packed = packing(5 * (256 + 2 * 512));
  CHECK(step_seconds == exactly(3 * kLayer + ring(2, kMapGradients) + packed));  // no launches on this device
}

TEST_CASE("distributed batch norm sums two numbers a channel over the devices of a sample, each way",
          "[sim]") {
  const std::string norm =
      "{name: norm, source: s, input: [16, 8, 8], layers: [{name: a, kind: batch_norm}, {name: l, kind: "
      "mean_squared_error}]}";
  const double local =
      step(4, norm, "{kind: spatial, split: 2, halo_overlap: false, batch_norm: local, " + kAfter + "}");
  const double group =
      step(4, norm, "{kind: spatial, split: 2, halo_overlap: false, batch_norm: group, " + kAfter + "}");
  // Two devices exchange at once, both ways: one round of all 128 bytes by recursive doubling.
  CHECK(group - local == Approx(2 * (kLatency + 128 / kBandwidth)).epsilon(1e-6));
}

TEST_CASE("filters gather activations forward and scatter error signals backward", "[sim]") {
  const double bytes = 4 * 3 * 1000;  // an activation of three samples; the first layer's input is everywhere
  const double exchanges = 3 * half_ring(2, bytes) + 3 * half_ring(2, bytes);
  CHECK(step(2, kDense, "{kind: filter_parallel, ways: 2, halo_overlap: false, " + kAfter + "}", 3) ==
        exactly(5 * kLayer + exchanges));
}

TEST_CASE("a model over two machines is filter parallelism where it is dense and halos where it is local",
          "[sim]") {
  CHECK(step(2, kDense, "{kind: model_parallel, machines: 2, " + kAfter + "}", 3) ==
        exactly(step(2, kDense, "{kind: filter_parallel, ways: 2, " + kAfter + "}", 3)));
  CHECK(step(2, kMaps, "{kind: model_parallel, machines: 2, halo_overlap: false, " + kAfter + "}", 5) ==
        exactly(step(2, kMaps, "{kind: spatial, split: 2, halo_overlap: false, " + kAfter + "}", 5)));
}

TEST_CASE("locally connected layers send the gradients of their halos back", "[sim]") {
  const std::string local =
      "{name: local, source: s, input: [4, 64, 16], layers: [{name: a, kind: locally_connected, filters: 8, "
      "kernel: 3, pad: 1, bias: false}, {name: b, kind: locally_connected, filters: 2, kernel: 3, pad: 1, "
      "bias: false}, {name: l, kind: mean_squared_error}]}";
  const double bytes = 5 * (256 + 2 * 512);  // rows of 4 channels of the input, and twice of 8 of b's
  CHECK(step(2, local, "{kind: model_parallel, machines: 2, halo_overlap: false}", 5) ==
        exactly(3 * kLayer + 3 * kLatency + bytes / kBandwidth + packing(bytes)));
}

TEST_CASE("the closed form of a replica over machines is what the simulator finds", "[sim]") {
  for (const std::string& model : {kDense, kMaps}) {
    const PlannedRun planned(2, model, "{kind: model_parallel, machines: 2}");
    Setting setting{planned.model, planned.device, planned.platform, {0, 1}};
    setting.part_trace = [](const PartModel& part) { return PlannedRun::even_trace(*part.model); };
    const test::PartitionedStep one = test::partitioned_step(setting, 2, 3);
    const double network = one.rounds * kLatency + one.bytes.value / kBandwidth;
    const double sums =
        model == kMaps ? ring(2, kMapGradients) : 0;  // shared filters, which DistBelief has not
    CHECK(step(2, model, "{kind: model_parallel, machines: 2, halo_overlap: false, " + kAfter + "}", 3) ==
          exactly(one.compute.value + network + sums));
  }
}

TEST_CASE("a replica of Downpour over machines takes the step of model_parallel and its exchange", "[sim]") {
  // The shard of a machine is on the machine itself, so what is left is half of the update.
  const std::string downpour =
      "{kind: parameter_server, machines_per_replica: 2, shards: 2, server: colocated, apply_time: 1 ms, "
      "exchanged: 8 MB, exchange_overhead: 50 us}";
  const std::string alone = "{kind: model_parallel, machines: 2, exchange_overhead: 50 us}";
  const double exchange = step(2, kDense, downpour, 3) - step(2, kDense, alone, 3);
  CHECK(exchange == Approx(0.001 / 2).epsilon(1e-4));
  CHECK(step(2, kMaps, downpour, 3) - step(2, kMaps, alone, 3) == Approx(exchange).epsilon(1e-6));
}

TEST_CASE("tensor parallelism pays two all-reduces of a block's output each way", "[sim]") {
  const int layers = 23;  // two blocks of ten, the last norm, the vocabulary and the loss
  const double block = 4 * 32 * 64, scores = 4 * 2 * 32;
  const double sums = (2 * 2 + 2 * 2 + 1) * (kLatency + block / kBandwidth) + kLatency + scores / kBandwidth;
  CHECK(step(2, kBlocks, "{kind: tensor, ways: 2, halo_overlap: false, " + kAfter + "}") ==
        Approx(layers * kLayer + sums).epsilon(1e-9));
}

TEST_CASE("recomputation pays the forward pass twice, with what it exchanges", "[sim]") {
  const double kept = 23 * kLayer, again = 23 * 0.010, block = kLatency + 4 * 32 * 64 / kBandwidth;
  const double scores = kLatency + 4 * 2 * 32 / kBandwidth;
  const std::string tensor = "{kind: tensor, ways: 2, halo_overlap: false, recompute: true, " + kAfter;
  // The forward pass has two sums a block and one of the scores; the backward pass has two a block and that
  // of the vocabulary. Blocks are computed again, not the last norm, the vocabulary and the loss with its
  // sum.
  const double whole = kept + again - 3 * 0.010 + 2 * (4 * block + scores) + 5 * block - scores;
  CHECK(step(2, kBlocks, tensor + "}") == exactly(whole));
  CHECK(step(2, kBlocks, tensor + ", accumulation: 3}", 3) == exactly(3 * whole - 2 * 23 * 0.001));
  CHECK(step(2, kBlocks,
             "{kind: pipeline, stages: 1, tensor: 2, halo_overlap: false, recompute: true, " + kAfter +
                 "}") == exactly(whole));

  const double halos = 2 * (2 * kLatency + 5 * (256 + 512) / kBandwidth + packing(5 * (256 + 512))) +
                       kLatency + 5 * 512 / kBandwidth + packing(5 * 512);
  CHECK(step(2, kMaps, "{kind: spatial, split: 2, halo_overlap: false, recompute: true, " + kAfter + "}",
             5) == exactly(3 * (kLayer + 0.010) + halos + ring(2, kMapGradients)));
}

TEST_CASE("sums of gradients go on beside the next stretch that is computed again", "[sim]") {
  const std::string residual =
      "{name: residual, source: s, input: [1000], layers: [{name: a, kind: dense, units: 1000, bias: false}, "
      "{name: b, kind: dense, units: 1000, bias: false}, {name: s, kind: add, inputs: [b, a]}, {name: d, "
      "kind: dense, units: 20000, bias: false}, {name: l, kind: mean_squared_error}]}";
  // The sum of d takes 80 ms; the passes of a, b and s after it take 60 ms, and 90 ms with the forward pass.
  CHECK(step(2, residual,
             "{kind: filter_parallel, ways: 1, recompute: true, bucket: tensor, all_reduce: ring}") ==
        exactly(5 * (kLayer + 0.010) + ring(2, 4e6)));
}

TEST_CASE("recomputation without blocks holds the outputs of additions and one stretch between them",
          "[sim]") {
  const std::string residual =
      "{name: residual, source: s, input: [64], layers: [{name: a, kind: dense, units: 64}, {name: b, kind: "
      "dense, units: 64}, {name: s, kind: add, inputs: [b, a]}, {name: c, kind: dense, units: 64}, {name: d, "
      "kind: dense, units: 64}, {name: t, kind: add, inputs: [d, c]}, {name: l, kind: mean_squared_error}]}";
  const auto held = [&](const std::string& recompute) {
    return PlannedRun(2, residual, "{kind: filter_parallel, ways: 2" + recompute + "}", 3).plan.memory;
  };
  const double sums = 2 * 32, stretch = 2 * 32;  // of one device
  CHECK(held(", recompute: true").activations.value == 3 * 4 * (sums + stretch));
  CHECK(held(", recompute: true").total() < held("").total());
  CHECK(held(", recompute: true").weights == held("").weights);
}

TEST_CASE("experts pay four all-to-alls a block", "[sim]") {
  const std::string experts =
      "{kind: mixture_of_experts, experts: 4, every: 2, top: 2, halo_overlap: false, " + kAfter;
  const double tokens = 4 * 2 * 32 * 64;  // bytes that a device sends away and keeps: two experts a token
  const double with = step(4, kBlocks, experts + ", ways: 4}");
  const Plan plan = PlannedRun(4, kBlocks, experts + ", ways: 4}").plan;
  double sums = 0;
  for (const Collective& one : plan.collectives) {
    if (one.kind != Collective::Kind::all_reduce) continue;
    sums += ring(communicator_of(plan, one).size, one.buffer.size.value);
  }
  // Gradients of experts stay on their devices; those of the other layers are summed over all devices.
  CHECK(with == exactly(23 * kLayer + 4 * 3 * (kLatency + tokens / 4 / kBandwidth) + sums));
}

TEST_CASE("the experts of a network pay as many all-to-alls", "[sim]") {
  const std::string mixture =
      "{name: mixture, source: s, input: [32, 64], layers: [{name: a, kind: dense, units: 64}, {name: e, "
      "kind: "
      "experts, experts: 4, top: 2, hidden: 32}, {name: l, kind: mean_squared_error}]}";
  const std::string strategy = "{kind: mixture_of_experts, halo_overlap: false, " + kAfter;
  const double tokens = 4 * 2 * 32 * 64;
  const double gradients = 4 * (64 * 64 + 64 + 4 * 64);  // of the dense layer and the router
  CHECK(step(4, mixture, strategy + ", ways: 4}") ==
        exactly(3 * kLayer + 4 * 3 * (kLatency + tokens / 4 / kBandwidth) + ring(4, gradients)));
  CHECK_THROWS_WITH(PlannedRun(4, mixture, "{kind: mixture_of_experts, ways: 4, experts: 4}"),
                    "strategy.yaml:1:46: strategy.experts: not valid: the network has experts of its own");
  CHECK_THROWS_WITH(PlannedRun(3, mixture, "{kind: mixture_of_experts, ways: 3}"),
                    Catch::Matchers::Contains("strategy.ways: 3 devices cannot share 4 experts evenly"));
  CHECK_THROWS_WITH(PlannedRun(2, kBlocks, "{kind: mixture_of_experts, ways: 2}"),
                    Catch::Matchers::Contains("strategy.experts: missing"));
}

TEST_CASE("folded groups give the step of a program for each device", "[sim]") {
  for (const std::string& strategy :
       {std::string("{kind: spatial, split: 2, all_reduce: ring}"),
        std::string("{kind: spatial, split: [2, 2], halo_overlap: false, all_reduce: ring}"),
        std::string("{kind: filter_parallel, ways: 4, all_reduce: ring}"),
        std::string("{kind: filter_parallel, ways: 4, recompute: true, all_reduce: ring}"),
        std::string("{kind: zero, stage: 3, all_reduce: ring}")}) {
    CAPTURE(strategy);
    CHECK(jittered(kMaps, strategy, true) == Approx(jittered(kMaps, strategy, false)).epsilon(1e-3));
  }
}

TEST_CASE("ZeRO moves what an all-reduce moves, and half more at stage 3", "[sim]") {
  const double gradients = 4e6 * 4;  // four dense layers
  const double compute = 5 * 0.030, update = 5 * 0.001 / 4;
  const auto zero = [&](int stage) {
    return step(4, kDense,
                "{kind: zero, stage: " + std::to_string(stage) + ", bucket: model, overlap: false}");
  };
  CHECK(zero(1) == exactly(compute + update + 2 * half_ring(4, gradients)));
  CHECK(zero(2) == exactly(zero(1)));
  CHECK(zero(3) == exactly(compute + update + 3 * half_ring(4, gradients)));
}

TEST_CASE("copies to the host lengthen only the layers that are shorter", "[sim]") {
  // Copies of 1,000 samples of 4 KB at 100 MB/s take 40 ms beside 10 ms forward and 20 ms backward. All five
  // layers are copied but the first, whose input stays.
  const double swapped = step(1, kDense, "{kind: synchronous, host_swap: 100 MB/s}", 1000);
  CHECK(swapped == exactly(kLayer + 4 * (0.040 + 0.040 + 0.001)));
  CHECK(step(1, kDense, "{kind: synchronous, host_swap: 100 GB/s}", 1000) == exactly(5 * kLayer));
}

TEST_CASE("bad splits and shares are refused with place and reason", "[sim][errors]") {
  CHECK_THROWS_WITH(PlannedRun(6, kMaps, "{kind: spatial, split: 4}"),
                    "strategy.yaml:1:24: strategy.split: 6 workers cannot form groups of 4; give a divisor");
  CHECK_THROWS_WITH(
      PlannedRun(128, kMaps, "{kind: spatial, split: 128}"),
      "strategy.yaml:1:24: strategy.split: layer a has 64 rows for 128 devices along dimension 0, so 64 "
      "would have none; set strategy.whole_from: LAYER to end the partition before this layer");
  CHECK_THROWS_WITH(
      PlannedRun(4, kMaps, "{kind: spatial, split: [2, 2, 1]}"),
      Catch::Matchers::Contains("strategy.split: expected 2 integers, devices along each dimension"));
  CHECK_THROWS_WITH(PlannedRun(4, kMaps, "{kind: spatial, split: [65536, 65536]}"),  // 2^32 devices
                    "strategy.yaml:1:24: strategy.split: expected at most 100000 devices, got 4294967296");
  CHECK_THROWS_WITH(
      PlannedRun(2, kMaps, "{kind: spatial, split: 2, whole_from: z}"),
      Catch::Matchers::Contains("strategy.whole_from: expected the name of a layer, got \"z\""));
  CHECK_THROWS_WITH(PlannedRun(16, kMaps, "{kind: filter_parallel, ways: 16}"),
                    "strategy.yaml:1:31: strategy.ways: layer a has 8 filters for 16 devices");
  CHECK_THROWS_WITH(PlannedRun(3, kBlocks, "{kind: tensor, ways: 3}"),
                    Catch::Matchers::Contains("has 4 heads, which 3 devices cannot share evenly"));
  CHECK_THROWS_WITH(PlannedRun(2, kBlocks, "{kind: tensor, ways: 2, recompute: blocks}"),
                    "strategy.yaml:1:36: strategy.recompute: expected true, false, none, selective, "
                    "operators, full, stage or {every: N}, got \"blocks\"");
  CHECK_THROWS_WITH(PlannedRun(2, kBlocks, "{kind: mixture_of_experts, ways: 2, experts: 3}"),
                    Catch::Matchers::Contains("strategy.experts: 2 devices cannot share 3 experts evenly"));
  CHECK_THROWS_WITH(PlannedRun(4, kDense, "{kind: zero, stage: 4}"),
                    Catch::Matchers::Contains("strategy.stage: expected an integer from 1 to 3"));
}

}  // namespace stepcast::model_parallel_time_test
