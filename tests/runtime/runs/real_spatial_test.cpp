#include <catch2/catch.hpp>

#include "guarded_backend.hpp"
#include "spatial_training.hpp"

namespace stepcast::real_spatial_test {

using namespace test;

TEST_CASE("a spatially partitioned mesh network trains like the whole one, to rounding",
          "[validate][training]") {
  // 26 rows in 2 and 4 parts are uneven after the strides: 13 rows in 7 + 6, 7 rows in 2 + 2 + 2 + 1.
  check_trains_as_whole(
      kMesh,
      GENERATE(PartitionCase{"split: 1", 1, 1, 2}, PartitionCase{"split: 2", 2, 2, 2},
               PartitionCase{"split: 4", 4, 4, 1}, PartitionCase{"split: [1, 2]", 2, 2, 2},
               PartitionCase{"split: [2, 2]", 4, 4, 2},
               PartitionCase{"split: 2, batch_norm: all, bucket: tensor, all_reduce: ring", 4, 2, 2}),
      {4, 7, 6});
}

TEST_CASE("max pools whose windows cross the partition boundary train like the whole ones, to rounding",
          "[validate][training]") {
  // 24 x 28, 12 x 14, 11 x 13, 5 x 6; 27 x 25, 14 x 13, 13 x 12, 6 x 6.
  const auto [input, labels] = GENERATE(std::pair<const char*, Shape>{"[3, 24, 28]", {4, 5, 6}},
                                        std::pair<const char*, Shape>{"[3, 27, 25]", {4, 6, 6}});
  CAPTURE(input);
  check_trains_as_whole(
      pools(input),
      GENERATE(PartitionCase{"split: 2", 2, 2, 2}, PartitionCase{"split: 4", 4, 4, 2},
               PartitionCase{"split: [1, 2]", 2, 2, 2}, PartitionCase{"split: [2, 2]", 4, 4, 2},
               PartitionCase{"split: 2, batch_norm: all", 4, 2, 2}),
      labels);
}

TEST_CASE(
    "a spatially partitioned classifier that reshards to whole samples trains like the whole one, to "
    "rounding",
    "[validate][training]") {
  check_trains_as_whole(kClasses,
                        GENERATE(PartitionCase{"split: 2", 2, 2, 4}, PartitionCase{"split: [2, 2]", 4, 4, 4},
                                 PartitionCase{"split: 2, whole_from: conv2", 2, 2, 2},
                                 PartitionCase{"split: 2, overlap: false", 4, 2, 2}),
                        {});
}

TEST_CASE("spatial shards in device memory train to the same bits", "[validate][training][device]") {
  const bool by_backend = GENERATE(false, true);
  const PartitionTrial t = partition_trials().at(GENERATE(range<std::size_t>(0, 7)));
  CAPTURE(t.partition.options, by_backend);
  const ShardTraining plain = trained_in_shards(t.model, t.partition, t.labels);
  const ShardTraining guarded =
      trained_in_shards(t.model, t.partition, t.labels, {make_guarded_backend, by_backend});
  CHECK(guarded.parameters == plain.parameters);
  CHECK(guarded.last == plain.last);
  CHECK(guarded.loss == plain.loss);
}

}  // namespace stepcast::real_spatial_test
