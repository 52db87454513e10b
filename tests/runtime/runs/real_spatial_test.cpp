#include <catch2/catch.hpp>

#include "core/random.hpp"
#include "core/yaml.hpp"
#include "guarded_backend.hpp"
#include "kernels/onednn/backend.hpp"
#include "runtime/devices/spatial_device.hpp"
#include "spatial_training.hpp"

namespace stepcast::real_spatial_test {

using namespace test;

TEST_CASE("a spatially partitioned mesh network trains like the whole one, to rounding",
          "[validate][training]") {
  // 26 rows in 2 and 4 parts are uneven after the strides: 13 rows in 7 + 6, 7 rows in 2 + 2 + 2 + 1.
  PartitionCase c =
      GENERATE(PartitionCase{"split: 1", 1, 1, 2}, PartitionCase{"split: 2", 2, 2, 2},
               PartitionCase{"split: 4", 4, 4, 1}, PartitionCase{"split: [1, 2]", 2, 2, 2},
               PartitionCase{"split: [2, 2]", 4, 4, 2},
               PartitionCase{"split: 2, batch_norm: all, bucket: tensor, all_reduce: ring", 4, 2, 2});
  c.halo_overlap = GENERATE(false, true);
  check_trains_as_whole(kMesh, c, {4, 7, 6});
}

TEST_CASE("max pools whose windows cross the partition boundary train like the whole ones, to rounding",
          "[validate][training]") {
  // 24 x 28, 12 x 14, 11 x 13, 5 x 6; 27 x 25, 14 x 13, 13 x 12, 6 x 6.
  const auto [input, labels] = GENERATE(std::pair<const char*, Shape>{"[3, 24, 28]", {4, 5, 6}},
                                        std::pair<const char*, Shape>{"[3, 27, 25]", {4, 6, 6}});
  CAPTURE(input);
  PartitionCase c = GENERATE(PartitionCase{"split: 2", 2, 2, 2}, PartitionCase{"split: 4", 4, 4, 2},
                             PartitionCase{"split: [1, 2]", 2, 2, 2}, PartitionCase{"split: [2, 2]", 4, 4, 2},
                             PartitionCase{"split: 2, batch_norm: all", 4, 2, 2});
  c.halo_overlap = GENERATE(false, true);
  check_trains_as_whole(pools(input), c, labels);
}

TEST_CASE(
    "a spatially partitioned classifier that reshards to whole samples trains like the whole one, to "
    "rounding",
    "[validate][training]") {
  PartitionCase c = GENERATE(PartitionCase{"split: 2", 2, 2, 4}, PartitionCase{"split: [2, 2]", 4, 4, 4},
                             PartitionCase{"split: 2, whole_from: conv2", 2, 2, 2},
                             PartitionCase{"split: 2, overlap: false", 4, 2, 2});
  c.halo_overlap = GENERATE(false, true);
  check_trains_as_whole(kClasses, c, {});
}

namespace {

/// Rows along the height of the map of an output, as they are after the interior and after the border.
struct Halves {
  std::vector<float> interior, both;
};

/// @param written  the tensor that the pass writes
Halves run_in_halves(LayerKernel& kernel, Pass pass, Tensor& written) {
  Halves halves;
  kernel.run_interior(pass);
  halves.interior = written.read();
  kernel.run_border(pass);
  halves.both = written.read();
  return halves;
}

/// Checks that the rows in `inner` were final after the interior, and that the border changed the others.
void check_halves(const Halves& halves, const Rows& all, const Rows& inner, std::int64_t width) {
  REQUIRE(inner.size() > 0);
  REQUIRE(inner.size() < all.size());
  for (std::size_t i = 0; i < halves.both.size(); ++i) {
    const std::int64_t row = all.first + static_cast<std::int64_t>(i) / width % all.size();
    const bool is_inner = row >= inner.first && row < inner.last;
    if ((halves.interior[i] == halves.both[i]) != is_inner) FAIL("element " << i << " in row " << row);
  }
}

}  // namespace

TEST_CASE("the interior of a spatial shard's layer is complete before halos arrive, and its border is not",
          "[validate][training]") {
  const YamlNode node = parse_yaml(kMesh, "model.yaml");
  const Model model = read_model(YamlValue(node, ""));
  ModelPartition partition;
  partition.form = ModelPartition::Form::positions;
  partition.spatial = {{2, 1}, model.layers.size(), true};
  const auto backend = make_onednn_backend();
  const SpatialNetwork shard = spatial_network(*backend, model, partition, 0, {});
  Network& network = *shard.network;
  for (const std::size_t layer : {std::size_t{3}, std::size_t{5}}) {  // a convolution and a pool
    CAPTURE(model.layers[layer].name);
    network.step();
    fill_uniform(network.kernel(layer).output(), RandomKey{1});
    fill_uniform(*network.kernel(layer).input_gradient(0), RandomKey{2});
    const ShardRows& rows = shard.part->rows[layer].front();
    const std::int64_t width = model.layers[layer].output.back();
    check_halves(run_in_halves(network.kernel(layer), Pass::forward, network.kernel(layer).output()),
                 rows.out, {rows.inner.first, std::min(rows.inner.last, rows.out.last)}, width);
    check_halves(
        run_in_halves(network.kernel(layer), Pass::backward_data, *network.kernel(layer).input_gradient(0)),
        rows.in, rows.inner_back, width);
  }
}

TEST_CASE("spatial shards in device memory train to the same bits", "[validate][training][device]") {
  const bool by_backend = GENERATE(false, true);
  PartitionTrial t = partition_trials().at(GENERATE(range<std::size_t>(0, 7)));
  t.partition.halo_overlap = GENERATE(false, true);
  CAPTURE(t.partition.options, t.partition.halo_overlap, by_backend);
  const ShardTraining plain = trained_in_shards(t.model, t.partition, t.labels);
  const ShardTraining guarded =
      trained_in_shards(t.model, t.partition, t.labels, {make_guarded_backend, by_backend});
  CHECK(guarded.parameters == plain.parameters);
  CHECK(guarded.last == plain.last);
  CHECK(guarded.loss == plain.loss);
}

}  // namespace stepcast::real_spatial_test
