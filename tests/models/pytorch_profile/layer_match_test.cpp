#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "models/network/model.hpp"
#include "models/pytorch_profile/profile.hpp"
#include "read_text.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

std::vector<NetworkOperator> operators(const std::vector<std::pair<const char*, const char*>>& named) {
  std::vector<NetworkOperator> all;
  for (const auto& [name, kind] : named) {
    NetworkOperator& one = all.emplace_back();
    one.name = name;
    one.kind = kind;
  }
  return all;
}

LayerMatch match(const std::vector<NetworkOperator>& all, const char* input, const char* layers,
                 std::int64_t batch = 0) {
  const YamlNode node =
      parse_yaml(fmt::format("{{name: m, source: s, input: {}, layers: [{}, {{name: out, kind: dense, units: "
                             "4}}, {{name: l, kind: mean_squared_error}}]}}",
                             input, layers),
                 "m.yaml");
  return match_layers("p", all, read_model(YamlValue(node, "")), batch);
}

}  // namespace

TEST_CASE("operators of BERT's positions and of a vision transformer's class token find their layers",
          "[models]") {
  const LayerMatch bert = match(operators({{"aten::embedding", "embedding"},
                                           {"aten::embedding", "embedding"},
                                           {"aten::add", "add"},
                                           {"aten::linear", "dense"},
                                           {"aten::mse_loss", "mean_squared_error"}}),
                                "[6]",
                                "{name: words, kind: embedding, rows: 9, columns: 8}, "
                                "{name: positions, kind: position_embedding, rows: 6}");
  CHECK(bert[1] == std::vector<int>{1, 2});
  const LayerMatch vision = match(operators({{"aten::expand", "view"},
                                             {"aten::cat", "other"},
                                             {"aten::add", "add"},
                                             {"aten::linear", "dense"},
                                             {"aten::mse_loss", "mean_squared_error"}}),
                                  "[6, 8]",
                                  "{name: class, kind: class_token}, {name: positions, kind: "
                                  "position_embedding, rows: 7}, {name: first, kind: first_token}");
  CHECK(vision[0] == std::vector<int>{0, 1});
  CHECK(vision[1] == std::vector<int>{2});
  CHECK(vision[2].empty());
}

TEST_CASE("one dense operator or several may compute queries, keys and values", "[models]") {
  const char* layers = "{name: qkv, kind: dense, units: 24}, {name: attention, kind: attention, heads: 2}";
  const auto projected = [](int projections) {
    std::vector<std::pair<const char*, const char*>> named;
    for (int i = 0; i < projections; ++i) {
      named.insert(named.end(), {{"aten::linear", "dense"}, {"aten::view", "view"}});
    }
    named.insert(named.end(), {{"aten::scaled_dot_product_attention", "attention"},
                               {"aten::linear", "dense"},
                               {"aten::mse_loss", "mean_squared_error"}});
    return operators(named);
  };
  CHECK(match(projected(1), "[6, 8]", layers)[0] == std::vector<int>{0});
  CHECK(match(projected(3), "[6, 8]", layers)[0] == std::vector<int>{0, 1, 2, 3, 4});
  // Where shapes are known, the operators' weights must have all rows of the layer.
  const auto with_rows = [&](std::int64_t rows) {
    std::vector<NetworkOperator> all = projected(3);
    for (const std::size_t i : {0U, 2U, 4U}) all[i].shapes = {{5, 6, 8}, {rows, 8}, {rows}};
    all[7].shapes = {{5, 6, 8}, {4, 8}, {4}};
    return all;
  };
  CHECK(match(with_rows(8), "[6, 8]", layers, 5)[0].size() == 5);
  CHECK_THROWS_WITH(match(with_rows(9), "[6, 8]", layers, 5), Contains("expected layer qkv (dense)"));
}
