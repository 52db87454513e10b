#include "models/partition/spatial_partition.hpp"

#include <catch2/catch.hpp>

#include "models/cost/cost.hpp"
#include "models/loader.hpp"
#include "models/partition/halo.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

std::string problem(const std::string& name, const Parts& parts) {
  const Model model = shipped_model(name);
  return spatial_problem(model, {parts, first_mixing_layer(model)});
}

}  // namespace

TEST_CASE(
    "mesh networks are partitioned up to the loss, ResNet-50 up to its last pool, VGG16 up to its first "
    "dense layer",
    "[models]") {
  const Model mesh = shipped_model("mesh-1k"), resnet = shipped_model("resnet50"),
              vgg = shipped_model("vgg16");
  CHECK(first_mixing_layer(mesh) == mesh.layers.size());
  CHECK(resnet.layers[first_mixing_layer(resnet)].kind == LayerKind::average_pool);
  CHECK(vgg.layers[first_mixing_layer(vgg)].name == "fc6");
}

TEST_CASE("parts of rows cover them once and differ by one at most", "[models]") {
  for (const std::int64_t rows : {1, 7, 8, 1024}) {
    for (const int parts : {1, 2, 3, 7, 16}) {
      std::int64_t next = 0;
      for (int i = 0; i < parts; ++i) {
        CHECK(part_of(rows, parts, i).first == next);
        next = part_of(rows, parts, i).last;
      }
      CHECK(next == rows);
      CHECK(part_of(rows, parts, 0).size() - part_of(rows, parts, parts - 1).size() <= 1);
    }
  }
}

TEST_CASE("devices are numbered row by row", "[models]") {
  CHECK(grid_place({2, 3}, 4) == std::vector<int>{1, 1});
  CHECK(device_count({2, 3}) == 6);
}

TEST_CASE("a part has a quarter of the work if four devices divide the rows evenly", "[models]") {
  const Model model = shipped_model("mesh-1k");
  const Model part = largest_spatial_part(model, {{4, 1}, model.layers.size()});
  CHECK(part.input == model.input);
  CHECK(part.layers.front().output == Shape{128, 128, 512});
  CHECK(4 * forward_flops(part).value == Approx(forward_flops(model).value).epsilon(1e-12));
  CHECK(trainable_parameters(part) == trainable_parameters(model));
}

TEST_CASE("the largest part counts if rows do not divide evenly", "[models]") {
  const Model model = shipped_model("resnet50");
  const Model part = largest_spatial_part(model, {{4, 1}, first_mixing_layer(model)});
  CHECK(4 * forward_flops(part).value > 1.01 * forward_flops(model).value);
}

TEST_CASE("layers on whole samples keep their shapes", "[models]") {
  const Model model = shipped_model("vgg16");
  const std::size_t dense = first_mixing_layer(model);
  const Model part = largest_spatial_part(model, {{2, 2}, dense});
  CHECK(part.layers[dense].input == model.layers[dense].input);
  CHECK(part.layers[dense - 1].output != model.layers[dense - 1].output);
}

TEST_CASE(
    "a partition that leaves a device without rows, or needs rows beyond the next neighbour, is refused",
    "[models][errors]") {
  CHECK(problem("mesh-1k", {4, 1}).empty());
  CHECK(problem("mesh-1k", {32, 1}).empty());
  CHECK(problem("mesh-1k", {64, 1}) ==
        "layer conv5_1 has 32 rows for 64 devices along dimension 0, so 32 would have none");
  CHECK(problem("resnet50", {4, 1}).empty());
  CHECK_THAT(problem("resnet50", {8, 1}), Catch::Matchers::Contains("has 7 rows for 8 devices"));
  CHECK(problem("chen-huo-dnn", {2, 1}) == "a sample of shape 429 cannot be partitioned along 2 dimensions");
  const Model wide = model_of(
      "{name: m, source: s, input: [1, 8, 8], layers: [{name: a, kind: convolution, filters: 1, kernel: 7, "
      "pad: 3}, {name: l, kind: mean_squared_error}]}");
  CHECK(spatial_problem(wide, {{2, 1}, 2}).empty());
  CHECK(spatial_problem(wide, {{4, 1}, 2}) == "layer a needs 3 rows of a neighbour that has 2");
  const Model dense = shipped_model("vgg16");
  CHECK(spatial_problem(dense, {{2, 1}, dense.layers.size()}) ==
        "layer fc6 mixes all positions and cannot be partitioned");
}
