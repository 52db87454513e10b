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

TEST_CASE("the shards of all ranks make up the parameters of the whole network", "[validate]") {
  const int ways = GENERATE(1, 2, 4);
  const PlannedParts planned(ways, kStack, "{kind: tensor, ways: " + std::to_string(ways) + "}", 4, 1);
  const Model& model = planned.model;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t k = 0; k < model.layers[i].parameters.size(); ++k) {
      std::vector<float> whole, again(static_cast<std::size_t>(model.layers[i].parameters[k].elements()));
      for (std::size_t element = 0; element < again.size(); ++element)
        whole.push_back(static_cast<float>(element + 1));
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

}  // namespace stepcast::real_tensor_test
