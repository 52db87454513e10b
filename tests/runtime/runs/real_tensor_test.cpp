#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "guarded_backend.hpp"
#include "partitioned_training.hpp"
#include "planned_parts.hpp"
#include "runtime/devices/rank_shard.hpp"

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

}  // namespace stepcast::real_tensor_test
