#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "guarded_backend.hpp"
#include "learned_curve.hpp"

namespace stepcast::learning_shard_test {

using namespace test;

/// Two blocks, of which parts can be computed again.
const std::string kAttention = R"(
name: attention
source: test
input: [6, 4]
layers:
  - {name: embed, kind: dense, units: 8}
  - repeat: 2
    name: block
    layers:
      - {name: qkv, kind: dense, units: 24}
      - {name: attention, kind: attention, heads: 2}
      - {name: projection, kind: dense, units: 8}
      - {name: expand, kind: dense, units: 12}
      - {name: gelu, kind: gelu}
      - {name: contract, kind: dense, units: 8}
  - {name: flatten, kind: reshape, shape: [48]}
  - {name: classes, kind: dense, units: 3}
  - {name: loss, kind: softmax_cross_entropy}
)";

TEST_CASE("ranks that share a network learn like ranks with whole networks, to rounding",
          "[validate][learning]") {
  using Kind = DataOptions::Kind;
  const std::string pipeline = "{kind: pipeline, stages: 2, ",
                    mesh = "{kind: synchronous, all_reduce: ring, ";
  const LearningCase c = GENERATE_COPY(
      LearningCase{pipeline + "split_points: [conv2], micro_batches: 4, schedule: gpipe}", 2, 1, &kImages,
                   Kind::images},
      LearningCase{pipeline + "split_points: [flatten], micro_batches: 4, schedule: 1f1b}", 2, 1, &kImages,
                   Kind::images},
      LearningCase{
          pipeline + "split_points: [relu1, conv2, fc1], chunks: 2, micro_batches: 4, schedule: interleaved}",
          2, 1, &kImages, Kind::images},
      LearningCase{
          pipeline +
              "split_points: [relu1, conv2, fc1], chunks: 2, micro_batches: 2, schedule: interleaved, zero: "
              "1, all_reduce: ring}",
          4, 2, &kImages, Kind::images},
      LearningCase{"{kind: pipeline, stages: 3, split_points: [pool1, fc1], micro_batches: 2, schedule: "
                   "1f1b, recompute: "
                   "true}",
                   3, 1, &kImages, Kind::images},
      LearningCase{"{kind: spatial, split: 2, halo_overlap: false}", 2, 1, &kImages, Kind::images},
      LearningCase{"{kind: spatial, split: [1, 2], halo_overlap: false, whole_from: conv2}", 4, 2, &kImages,
                   Kind::images},
      LearningCase{"{kind: spatial, split: 2, halo_overlap: false, whole_from: conv1}", 2, 1, &kImages,
                   Kind::images},
      LearningCase{"{kind: spatial, split: 2, halo_overlap: false}", 2, 1, &kDigits, Kind::images},
      LearningCase{"{kind: spatial, split: 2, halo_overlap: false}", 2, 1, &kPixels, Kind::mesh},
      LearningCase{"{kind: spatial, split: [2, 2], halo_overlap: false, batch_norm: all}", 4, 1, &kPixels,
                   Kind::mesh},
      LearningCase{pipeline + "tensor: 2, split_points: [add], micro_batches: 4, schedule: 1f1b}", 4, 1,
                   &kBlocks, Kind::sequences},
      LearningCase{
          pipeline +
              "tensor: 2, split_points: [expand], micro_batches: 2, schedule: gpipe, all_reduce: ring, "
              "halo_overlap: false, recompute: true}",
          8, 2, &kBlocks, Kind::sequences},
      LearningCase{pipeline +
                       "tensor: 2, split_points: [expand, add, classes], schedule: interleaved, chunks: 2, "
                       "micro_batches: 2}",
                   4, 1, &kBlocks, Kind::sequences},
      LearningCase{"{kind: zero, stage: 3}", 2, 2, &kImages, Kind::images},
      LearningCase{mesh + "shard: parameters, accumulation: 2}", 2, 2, &kImages, Kind::images},
      LearningCase{mesh + "mesh: {pipeline: 2, tensor: 2}, split_points: [add], accumulation: 4}", 4, 1,
                   &kBlocks, Kind::sequences},
      LearningCase{mesh + "mesh: {tensor: 2}, shard: parameters, bucket: 200 B, recompute: full}", 4, 2,
                   &kBlocks, Kind::sequences},
      LearningCase{mesh + "mesh: {tensor: 2}, shard: parameters, shard_within: 2, bucket: 200 B}", 8, 4,
                   &kBlocks, Kind::sequences},
      LearningCase{mesh + "mesh: {pipeline: 2, tensor: 2}, split_points: [expand], accumulation: 2, shard: "
                          "parameters, bucket: tensor, recompute: full}",
                   8, 2, &kBlocks, Kind::sequences},
      LearningCase{mesh + "mesh: {pipeline: 2, tensor: 2}, split_points: [expand], accumulation: 2, shard: "
                          "optimizer, recompute: stage}",
                   8, 2, &kBlocks, Kind::sequences},
      LearningCase{mesh + "shard: parameters, recompute: {every: 2}}", 2, 2, &kAttention, Kind::sequences},
      LearningCase{mesh +
                       "mesh: {pipeline: 2}, split: blocks, accumulation: 2, shard: parameters, recompute: "
                       "selective}",
                   4, 2, &kAttention, Kind::sequences},
      LearningCase{mesh + "mesh: {spatial: 2}, halo_overlap: false}", 4, 2, &kImages, Kind::images},
      LearningCase{"{kind: tensor, ways: 2}", 2, 1, &kBlocks, Kind::sequences},
      LearningCase{"{kind: tensor, ways: 2, all_reduce: ring}", 4, 2, &kBlocks, Kind::sequences});
  CAPTURE(c.strategy);
  LearningOptions options = options_of(c);
  options.seed = 7;  // not the default, which a shard would have that does not read it
  const auto on_one_rank = [&] {
    return learned("{kind: synchronous, all_reduce: ring}", c.replicas, *c.model, options);
  };
  const Curve whole = on_one_rank(), shared = learned(c.strategy, c.ranks, *c.model, options);
  check_same(shared, whole);
  // The training does something. On held-out data the loss may rise: there are only 40 samples to learn from.
  CHECK(std::abs(whole.evaluations.back().loss - whole.evaluations.front().loss) > 0.01);

  const auto file = std::filesystem::temp_directory_path() / ("stepcast-learned-" + std::to_string(getpid()));
  const YamlNode text = parse_yaml(*c.model, "model.yaml");
  save_checkpoint(file, read_model(YamlValue(text, "")), whole.last);
  options.start = file.string();
  const Curve from_there = learned(c.strategy, c.ranks, *c.model, options);
  CHECK(from_there.evaluations.front().loss == Approx(whole.evaluations.back().loss).epsilon(1e-5));
  check_same(from_there, on_one_rank());
  std::filesystem::remove(file);
}

TEST_CASE("ranks with arrays in device memory learn to the same bits", "[validate][learning][device]") {
  using Kind = DataOptions::Kind;
  const std::string pipeline = "{kind: pipeline, stages: 2, ";
  const LearningCase c = GENERATE_COPY(
      LearningCase{"{kind: synchronous, all_reduce: ring, bucket: tensor}", 2, 2, &kImages, Kind::images},
      LearningCase{"{kind: synchronous, all_reduce: double_tree}", 3, 3, &kBlocks, Kind::sequences},
      LearningCase{"{kind: zero, stage: 2, bucket: 200 B}", 2, 2, &kImages, Kind::images},
      LearningCase{"{kind: bmuf, mini_batches: 2, block_momentum: 0.9, aggregation: flat}", 2, 2, &kDigits,
                   Kind::images},
      LearningCase{pipeline + "split_points: [conv2], micro_batches: 4, schedule: gpipe}", 2, 1, &kImages,
                   Kind::images},
      LearningCase{
          pipeline + "split_points: [relu1, conv2, fc1], chunks: 2, micro_batches: 4, schedule: interleaved}",
          2, 1, &kImages, Kind::images},
      LearningCase{"{kind: tensor, ways: 2, all_reduce: ring}", 4, 2, &kBlocks, Kind::sequences},
      LearningCase{pipeline + "tensor: 2, split_points: [add], micro_batches: 4, schedule: 1f1b}", 4, 1,
                   &kBlocks, Kind::sequences});
  CAPTURE(c.strategy);
  LearningOptions options = options_of(c);
  const Curve plain = learned(c.strategy, c.ranks, *c.model, options);
  const auto check_equal = [](const Curve& one, const Curve& other) {
    REQUIRE(one.evaluations.size() == other.evaluations.size());
    REQUIRE(one.evaluations.size() > 2);
    for (std::size_t i = 0; i < one.evaluations.size(); ++i) {
      const EvaluatedLoss &a = one.evaluations[i], &b = other.evaluations[i];
      CHECK((a.step == b.step && a.samples == b.samples));
      CHECK(a.loss == b.loss);
      CHECK(a.accuracy == b.accuracy);
    }
    CHECK(one.last == other.last);
    CHECK(one.evaluations.back().loss != one.evaluations.front().loss);
  };
  check_equal(learned(c.strategy, c.ranks, *c.model, options, make_guarded_backend), plain);

  const auto file = std::filesystem::temp_directory_path() / ("stepcast-guarded-" + std::to_string(getpid()));
  const YamlNode text = parse_yaml(*c.model, "model.yaml");
  save_checkpoint(file, read_model(YamlValue(text, "")), plain.last);
  options.start = file.string();
  check_equal(learned(c.strategy, c.ranks, *c.model, options, make_guarded_backend),
              learned(c.strategy, c.ranks, *c.model, options));
  std::filesystem::remove(file);
}

}  // namespace stepcast::learning_shard_test
