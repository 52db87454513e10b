#include "kernels/network/backend.hpp"

#include <catch2/catch.hpp>

#include "gpu/check/check_layers.hpp"
#include "learned_curve.hpp"
#include "partitioned_training.hpp"
#include "spatial_training.hpp"

// Tests of the whole cuDNN backend on a fake GPU: the project's kernels on the host, CUDA's runtime without a
// device, and fakes of cuDNN's convolutions, batch norm and RNN and of cuBLAS's products, which are plain
// loops that check descriptors by the libraries' rules. These tests show neither what other calls of the
// libraries do nor how long a GPU takes.
namespace stepcast::test {
namespace {

constexpr GpuOptions kNchw{.precision = GpuPrecision::f32, .layout = ImageLayout::nchw};
constexpr GpuOptions kNhwc{.precision = GpuPrecision::f32, .layout = ImageLayout::nhwc};

std::unique_ptr<Backend> nchw_backend() {
  return make_cudnn_backend(kNchw);
}
std::unique_ptr<Backend> nhwc_backend() {
  return make_cudnn_backend(kNhwc);
}

std::unique_ptr<Backend> graph_backend() {
  return make_cudnn_backend({.graphs = true});
}

}  // namespace

TEST_CASE("the backend's layers compute what plain loops do", "[fake][long]") {
  const auto precision =
      GENERATE(GpuPrecision::f32, GpuPrecision::tf32, GpuPrecision::f16, GpuPrecision::bf16);
  const auto layout = GENERATE(ImageLayout::nchw, ImageLayout::nhwc);
  const auto backend = make_cudnn_backend({.precision = precision, .layout = layout});
  auto found = check_layers(*backend);
  CHECK(found.size() > 100);
  const auto shared = check_partitioned_layers(*backend);
  CHECK(shared.size() > 30);
  found.insert(found.end(), shared.begin(), shared.end());
  for (const Deviation& one : found) {
    INFO(one.layer << ", " << one.array);
    CHECK(one.error <= rounding_tolerance(precision));
  }
}

TEST_CASE("samples partitioned over several GPUs train like whole ones on a CPU, to rounding",
          "[fake][long]") {
  const auto number = GENERATE(range<std::size_t>(0, 7));
  const PartitionTrial t = partition_trials().at(number);
  const bool carried = number % 2 == 1;
  const auto make = carried ? nhwc_backend : nchw_backend;
  CAPTURE(carried);
  check_trains_as_whole(t.model, t.partition, t.labels, {make, carried});
}

TEST_CASE("layers that several GPUs share train like whole ones on a CPU, to rounding", "[fake][long]") {
  const std::string model = GENERATE(kStack, kUnshared);
  const auto c = GENERATE(SharedCase{"ways: 2", 2, 2, 4}, SharedCase{"ways: 4", 4, 4, 2},
                          SharedCase{"ways: 2, bucket: tensor, all_reduce: ring", 4, 2, 2},
                          SharedCase{"ways: 2, accumulation: 2, halo_overlap: false", 2, 2, 4});
  check_trains_as_whole(model, c, {nchw_backend, c.ranks == 4});
}

TEST_CASE("layers that several GPUs share in bf16 train like whole ones, to its rounding", "[fake]") {
  const auto make = []() { return make_cudnn_backend({.precision = GpuPrecision::bf16}); };
  check_trains_as_whole(kStack, {"ways: 2", 2, 2, 4}, {make, false, 0.02});
}

TEST_CASE("ranks on GPUs learn what ranks on CPUs do, to rounding", "[fake][long]") {
  using Kind = DataOptions::Kind;
  const LearningCase c = GENERATE(
      LearningCase{"{kind: synchronous, all_reduce: ring, bucket: tensor}", 2, 2, &kImages, Kind::images},
      LearningCase{"{kind: zero, stage: 2, bucket: 200 B}", 2, 2, &kDigits, Kind::images},
      LearningCase{"{kind: pipeline, stages: 2, split_points: [conv2], micro_batches: 4, schedule: gpipe}", 2,
                   1, &kImages, Kind::images},
      LearningCase{"{kind: spatial, split: 2, halo_overlap: false}", 2, 1, &kImages, Kind::images},
      LearningCase{"{kind: tensor, ways: 2, all_reduce: ring}", 4, 2, &kBlocks, Kind::sequences},
      LearningCase{
          "{kind: pipeline, stages: 2, tensor: 2, split_points: [add], micro_batches: 4, schedule: 1f1b}", 4,
          1, &kBlocks, Kind::sequences});
  const bool nhwc = c.model == &kDigits;
  const auto make = nhwc ? nhwc_backend : nchw_backend;
  CAPTURE(c.strategy, nhwc);
  const Curve expected = learned(c.strategy, c.ranks, *c.model, options_of(c));
  check_same(learned(c.strategy, c.ranks, *c.model, options_of(c), make), expected);
  CHECK(expected.evaluations.back().loss != expected.evaluations.front().loss);
}

TEST_CASE("ranks on GPUs that replay passes as graphs learn what ranks on CPUs do, to rounding",
          "[fake][graphs][long]") {
  using Kind = DataOptions::Kind;
  const LearningCase c = GENERATE(
      LearningCase{"{kind: synchronous, all_reduce: ring, bucket: tensor}", 2, 2, &kImages, Kind::images},
      LearningCase{"{kind: pipeline, stages: 2, split_points: [conv2], micro_batches: 4, schedule: 1f1b}", 2,
                   1, &kImages, Kind::images},
      LearningCase{"{kind: tensor, ways: 2, all_reduce: ring}", 4, 2, &kBlocks, Kind::sequences});
  CAPTURE(c.strategy);
  check_same(learned(c.strategy, c.ranks, *c.model, options_of(c), graph_backend),
             learned(c.strategy, c.ranks, *c.model, options_of(c)));
}

}  // namespace stepcast::test
