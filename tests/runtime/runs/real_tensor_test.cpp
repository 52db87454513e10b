#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/random.hpp"
#include "core/yaml.hpp"
#include "guarded_backend.hpp"
#include "kernels/onednn/backend.hpp"
#include "partitioned_training.hpp"
#include "planned_parts.hpp"
#include "runtime/devices/rank_shard.hpp"
#include "runtime/devices/spatial_device.hpp"
#include "spatial_training.hpp"

namespace stepcast::real_tensor_test {
using test::kStack;
using test::SharedCase;

TEST_CASE("a tensor-parallel transformer trains like the whole one, to rounding", "[validate][training]") {
  const std::string text = GENERATE(kStack, test::kUnshared);
  const auto c =
      GENERATE(SharedCase{"ways: 1", 1, 1, 4}, SharedCase{"ways: 2", 2, 2, 4}, SharedCase{"ways: 4", 4, 4, 2},
               SharedCase{"ways: 2, halo_overlap: false, overlap: false", 2, 2, 2},
               SharedCase{"ways: 2, bucket: tensor, all_reduce: ring", 4, 2, 2},
               SharedCase{"ways: 2, accumulation: 2", 2, 2, 4},
               SharedCase{"ways: 2, recompute: true, halo_overlap: false", 2, 2, 2});
  test::check_trains_as_whole(text, c);
}

TEST_CASE("tensor-parallel layers in device memory train like the whole ones",
          "[validate][training][device]") {
  const bool by_backend = GENERATE(false, true);
  const auto c = GENERATE(SharedCase{"ways: 2", 2, 2, 4}, SharedCase{"ways: 4", 4, 4, 2},
                          SharedCase{"ways: 2, bucket: tensor, all_reduce: ring", 4, 2, 2},
                          SharedCase{"ways: 2, accumulation: 2, halo_overlap: false", 2, 2, 4});
  test::check_trains_as_whole(kStack, c, {test::make_guarded_backend, by_backend});
}

TEST_CASE("a network whose filters ranks share trains like the whole one, to rounding",
          "[validate][training]") {
  const std::string text = GENERATE(test::kFilters, test::kTokens, test::kElements);
  auto c =
      GENERATE(SharedCase{"ways: 1", 1, 1, 4}, SharedCase{"ways: 2", 2, 2, 4}, SharedCase{"ways: 4", 4, 4, 2},
               SharedCase{"ways: 2, halo_overlap: false, overlap: false", 2, 2, 2});
  c.kind = "filter_parallel";
  test::check_trains_as_whole(text, c);
}

TEST_CASE("replicas, micro-batches and recomputation with shared filters train like the whole network",
          "[validate][training]") {
  auto c = GENERATE(SharedCase{"ways: 2, bucket: tensor, all_reduce: ring", 4, 2, 2},
                    SharedCase{"ways: 2, accumulation: 2", 2, 2, 4},
                    SharedCase{"ways: 2, recompute: true", 2, 2, 2});  // batch norm would count twice
  c.kind = "filter_parallel";
  test::check_trains_as_whole(test::kTokens, c);
}

TEST_CASE("a network over machines trains like the whole one, to rounding", "[validate][training]") {
  const std::string text = GENERATE(test::kLocal, test::kUnits, test::kConvolved, test::kTokens);
  auto c = GENERATE(SharedCase{"machines: 1", 1, 1, 4}, SharedCase{"machines: 2", 2, 2, 4},
                    SharedCase{"machines: 4", 4, 4, 2},
                    SharedCase{"machines: 2, halo_overlap: false, overlap: false", 2, 2, 2},
                    SharedCase{"machines: 2, bucket: tensor, all_reduce: ring", 4, 2, 2},
                    SharedCase{"machines: 2, accumulation: 2", 2, 2, 4},
                    SharedCase{"machines: 4, recompute: true", 4, 4, 2});
  c.kind = "model_parallel";
  test::check_trains_as_whole(text, c);
}

TEST_CASE("a replica over machines that exchanges with servers trains like the whole network on one machine",
          "[validate][training]") {
  const std::string text = GENERATE(test::kLocal, test::kTokens);
  auto c = GENERATE(SharedCase{"machines_per_replica: 2, shards: 2", 2, 2, 4},
                    SharedCase{"machines_per_replica: 4, shards: 4", 4, 4, 2});
  c.options += ", server: colocated";
  c.kind = "parameter_server";
  test::check_trains_as_whole(text, c);
}

TEST_CASE("shared filters in device memory train like the whole ones", "[validate][training][device]") {
  const bool by_backend = GENERATE(false, true);
  const std::string text = GENERATE(test::kFilters, test::kTokens);
  auto c = GENERATE(SharedCase{"ways: 2", 2, 2, 4}, SharedCase{"ways: 4", 4, 4, 2});
  c.kind = "filter_parallel";
  test::check_trains_as_whole(text, c, {test::make_guarded_backend, by_backend});
}

TEST_CASE("the shards of all ranks make up the parameters of the whole network", "[validate]") {
  const int ways = GENERATE(1, 2, 4);
  const bool filters = GENERATE(false, true);
  const PlannedParts planned(
      ways, filters ? test::kFilters : kStack,
      fmt::format("{{kind: {}, ways: {}}}", filters ? "filter_parallel" : "tensor", ways), 4, 1);
  const Model& model = planned.model;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t k = 0; k < model.layers[i].parameters.size(); ++k) {
      std::vector<float> whole, again(model.layers[i].parameters[k].elements());
      for (std::size_t element = 0; element < again.size(); ++element) whole.push_back(element + 1);
      for (int place = 0; place < ways; ++place) {
        const SharedPart part = tensor_shard(model, planned.plan.partition, place);
        insert_part(extract_part(whole, part, i, k), part, i, k, again);
      }
      CHECK(again == whole);
    }
  }
}

TEST_CASE("tensor-parallel networks that kernels cannot run are refused with the reason", "[validate]") {
  const auto why = [](const std::string& text, const std::string& options) {
    const PlannedParts planned(2, text, "{kind: tensor, ways: 2, " + options + "}", 4, 1);
    return planned.plan.partition.simulated_only;
  };
  CHECK(why(kStack, "halo_overlap: false") == "");
  CHECK(why(kStack, "precision: mixed") == "activations of 2 bytes");
  CHECK(why(R"(
name: drops
source: test
input: [8]
layers:
  - {name: drop, kind: dropout, rate: 0.1}
  - {name: expand, kind: dense, units: 8}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8}
  - {name: loss, kind: mean_squared_error}
)",
            "recompute: true") ==
        "recomputation of dropout, which would drop other elements the second time");
  CHECK(why(R"(
name: drops
source: test
input: [8]
layers:
  - {name: expand, kind: dense, units: 8}
  - {name: gelu, kind: gelu}
  - {name: drop, kind: dropout, rate: 0.1}
  - {name: contract, kind: dense, units: 8}
  - {name: loss, kind: mean_squared_error}
)",
            "overlap: true") == "a part of layer drop (dropout) would drop other elements");
}

TEST_CASE("networks whose shared filters kernels cannot compute are refused with the reason", "[validate]") {
  const auto why = [](const std::string& layers) {
    const PlannedParts planned(2, "name: n\nsource: test\ninput: [2, 4, 4]\nlayers:\n" + layers,
                               "{kind: filter_parallel, ways: 2}", 4, 1);
    return planned.plan.partition.simulated_only;
  };
  const std::string conv = "  - {name: conv, kind: convolution, filters: 4, kernel: 3}\n",
                    end =
                        "  - {name: flat, kind: reshape, shape: [16]}\n"
                        "  - {name: fc, kind: dense, units: 4}\n"
                        "  - {name: loss, kind: softmax_cross_entropy}\n";
  CHECK(why(conv + end) == "");
  CHECK(why("  - {name: conv, kind: convolution, filters: 5, kernel: 3}\n"
            "  - {name: loss, kind: softmax_cross_entropy}\n") ==
        "layer conv (convolution) has parts of unequal size on 2 devices");
  CHECK(why(conv + "  - {name: drop, kind: dropout, rate: 0.1}\n" + end) ==
        "a part of layer drop (dropout) would drop other elements");
  CHECK(why(conv + "  - {name: loss, kind: mean_squared_error}\n") == "");
  const PlannedParts tokens(
      2,
      "{name: n, source: test, input: [5, 3], layers: [{name: fc, kind: dense, units: 4}, "
      "{name: loss, kind: mean_squared_error}]}",
      "{kind: filter_parallel, ways: 2}", 4, 1);
  CHECK(tokens.plan.partition.simulated_only ==
        "layer loss (mean_squared_error) has targets that devices share");
  CHECK(why(conv + "  - {name: pairs, kind: reshape, shape: [8, 2]}\n"
                   "  - {name: fc, kind: dense, units: 4}\n"
                   "  - {name: loss, kind: softmax_cross_entropy}\n") ==
        "layer pairs (reshape) reshapes a map that devices share");
}

TEST_CASE("networks over machines whose parts kernels cannot compute are refused with the reason",
          "[validate]") {
  const auto why = [](const std::string& layers, int inputs, int units = 4) {
    const std::string text = fmt::format(
        "name: n\nsource: test\ninput: [2, 6, 6]\nlayers:\n{}"
        "  - {{name: flat, kind: reshape, shape: [{}]}}\n"
        "  - {{name: fc, kind: dense, units: {}}}\n"
        "  - {{name: loss, kind: softmax_cross_entropy}}\n",
        layers, inputs, units);
    return PlannedParts(2, text, "{kind: model_parallel, machines: 2}", 4, 1).plan.partition.simulated_only;
  };
  const std::string local = "  - {name: local, kind: locally_connected, filters: 4, kernel: 3, pad: 1}\n";
  CHECK(why(local, 144) == "");
  CHECK(why(local + "  - {name: bn, kind: batch_norm}\n", 144) ==
        "batch-norm statistics of other samples than those of the group");
  CHECK(why("  - {name: local, kind: locally_connected, filters: 4, kernel: 4}\n", 36) ==
        "layer local (locally_connected) has parts of unequal size");
  CHECK(why(local + "  - {name: pool, kind: average_pool, kernel: 6}\n", 4) ==
        "layer pool (average_pool) has windows over parts of several devices");
  CHECK(why(local, 144, 5) == "layer fc (dense) has parts of unequal size on 2 devices");
}

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
}  // namespace stepcast::real_tensor_test
