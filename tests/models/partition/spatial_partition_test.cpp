#include "models/partition/spatial_partition.hpp"

#include <catch2/catch.hpp>

#include "core/yaml.hpp"
#include "models/cost/cost.hpp"
#include "models/loader.hpp"
#include "models/partition/spatial_shard.hpp"
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

namespace {

struct Case {
  std::int64_t inputs;
  SlidingWindow slide;
  std::int64_t pad_after;
};

std::int64_t outputs_of(const Case& given) {
  return (given.inputs + given.slide.pad_before + given.pad_after - given.slide.kernel) / given.slide.stride +
         1;
}

/// Whether output row `out` reads input row `in`, determined by trying every tap of the window.
bool reads(const SlidingWindow& slide, std::int64_t out, std::int64_t in) {
  for (std::int64_t tap = 0; tap < slide.kernel; ++tap) {
    if (out * slide.stride - slide.pad_before + tap == in) return true;
  }
  return false;
}

/// The range of rows, out of `size`, for which `wanted` is true.
template <class Wanted>
Rows enumerated(std::int64_t size, Wanted wanted) {
  Rows rows{size, 0};
  for (std::int64_t row = 0; row < size; ++row) {
    if (!wanted(row)) continue;
    rows.first = std::min(rows.first, row);
    rows.last = row + 1;
  }
  return rows.last == 0 ? Rows{} : rows;
}

Layer one_convolution(std::int64_t rows, int kernel, int stride, int pad) {
  return model_of("{name: m, source: s, input: [2, " + std::to_string(rows) +
                  ", 8], layers: [{name: a, kind: convolution, filters: 3, kernel: [" +
                  std::to_string(kernel) + ", 1], stride: [" + std::to_string(stride) + ", 1], pad: [" +
                  std::to_string(pad) + ", 0]}, {name: l, kind: mean_squared_error}]}")
      .layers.front();
}

double received(const std::string& model_name, int device, bool forward) {
  const Model model = shipped_model(model_name);
  const SpatialPartition partition{{4, 1}, model.layers.size()};
  double elements = 0;
  for (const LayerHalo& halo : device_halos(model, partition, device)) {
    elements += elements_of(forward ? halo.forward : halo.backward);
  }
  return 4 * elements / 1e6;
}

}  // namespace

TEST_CASE("rows_read and rows_reading agree with an enumeration of the window's taps", "[models]") {
  for (const std::int64_t kernel : {1, 2, 3, 4, 5, 7}) {
    for (const std::int64_t stride : {1, 2, 3, 5}) {
      for (const std::int64_t pad : {std::int64_t{0}, kernel / 2, kernel - 1}) {
        const Case given{23, {kernel, stride, pad}, kernel / 2};
        const std::int64_t outputs = outputs_of(given);
        CAPTURE(kernel, stride, pad, outputs);
        for (int parts = 1; parts <= 5; ++parts) {
          for (int index = 0; index < parts; ++index) {
            const Rows out = part_of(outputs, parts, index), in = part_of(given.inputs, parts, index);
            const Rows read = rows_read(given.slide, out, given.inputs);
            const Rows by_taps = enumerated(given.inputs, [&](std::int64_t row) {
              for (std::int64_t o = out.first; o < out.last; ++o) {
                if (reads(given.slide, o, row)) return true;
              }
              return false;
            });
            if (by_taps.size() > 0) {
              // Windows that lie only in the padding read no rows, but are counted at their position.
              CHECK(read.first == by_taps.first);
              CHECK(read.last == by_taps.last);
            }
            const Rows reading = rows_reading(given.slide, in, outputs);
            const Rows readers = enumerated(outputs, [&](std::int64_t o) {
              for (std::int64_t row = in.first; row < in.last; ++row) {
                if (reads(given.slide, o, row)) return true;
              }
              return false;
            });
            if (readers.size() > 0) {
              CHECK(reading.first == readers.first);
              CHECK(reading.last == readers.last);
            } else {
              CHECK(reading.size() <= 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the halos of interior strips follow from kernel, stride and padding", "[models]") {
  struct Expected {
    int kernel, stride, pad;
    Halo forward, backward;
  };
  const auto given = GENERATE(values<Expected>({{3, 1, 1, {1, 1}, {1, 1}},
                                                {3, 2, 1, {1, 0}, {0, 1}},
                                                {5, 2, 2, {2, 1}, {1, 1}},
                                                {1, 1, 0, {0, 0}, {0, 0}},
                                                {1, 2, 0, {0, 0}, {0, 0}},
                                                {7, 2, 3, {3, 2}, {1, 2}}}));
  CAPTURE(given.kernel, given.stride);
  const DimensionHalo halo =
      dimension_halo(one_convolution(64, given.kernel, given.stride, given.pad), 0, 4, 1);
  CHECK(halo.forward.before == given.forward.before);
  CHECK(halo.forward.after == given.forward.after);
  CHECK(halo.backward.before == given.backward.before);
  CHECK(halo.backward.after == given.backward.after);
}

TEST_CASE("a max pool needs the rows of all windows that read its own rows, to find their largest elements",
          "[models]") {
  Layer layer = one_convolution(64, 3, 2, 1);
  layer.kind = LayerKind::max_pool;
  const DimensionHalo interior = dimension_halo(layer, 0, 4, 1), last = dimension_halo(layer, 0, 4, 3);
  CHECK(interior.forward.before == 1);
  CHECK(interior.forward.after == 2);  // rows of the neighbour's first window
  CHECK(interior.backward.before == 0);
  CHECK(interior.backward.after == 1);
  CHECK(last.forward.before == 1);
  CHECK(last.forward.after == 0);
}

TEST_CASE("the outer strips need nothing from outside", "[models]") {
  const Layer layer = one_convolution(64, 3, 1, 1);
  CHECK(dimension_halo(layer, 0, 4, 0).forward.before == 0);
  CHECK(dimension_halo(layer, 0, 4, 0).forward.after == 1);
  CHECK(dimension_halo(layer, 0, 4, 3).forward.before == 1);
  CHECK(dimension_halo(layer, 0, 4, 3).forward.after == 0);
  CHECK(dimension_halo(layer, 0, 1, 0).forward.after == 0);
}

TEST_CASE("an interior GPU of four receives the elements that follow from the shapes of the mesh networks",
          "[models]") {
  CHECK(received("mesh-1k", 1, true) == Approx(11.8).margin(0.05));
  CHECK(received("mesh-1k", 1, false) == Approx(11.6).margin(0.05));
  CHECK(received("mesh-2k", 1, true) == Approx(8.5).margin(0.05));
  CHECK(received("mesh-2k", 1, false) == Approx(7.6).margin(0.05));
}

TEST_CASE("halos are exchanged by the 30 and 18 convolutions with kernels above 1", "[models]") {
  for (const auto& [name, convolutions] : {std::pair{"mesh-1k", 30}, std::pair{"mesh-2k", 18}}) {
    const Model model = shipped_model(name);
    int forward = 0, backward = 0;
    for (const LayerHalo& halo : device_halos(model, {{4, 1}, model.layers.size()}, 1)) {
      forward += halo.forward.empty() ? 0 : 1;
      backward += halo.backward.empty() ? 0 : 1;
    }
    CHECK(forward == convolutions);
    CHECK(backward == convolutions - 1);  // nothing below the first layer
  }
}

TEST_CASE("devices send as many elements as they receive, for even and uneven partitions", "[models]") {
  const Model model = shipped_model("mesh-1k");
  const Layer& layer = model.layers.front();
  for (const int parts : {2, 3, 5, 7}) {
    std::int64_t rows = 0;
    for (int i = 0; i < parts; ++i) rows += part_of(layer.input[1], parts, i).size();
    CHECK(rows == layer.input[1]);
    CHECK(part_of(layer.input[1], parts, 0).size() - part_of(layer.input[1], parts, parts - 1).size() <= 1);
  }
}

TEST_CASE("a partition of height and width sends corners along with the rows", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [2, 12, 12], layers: [{name: a, kind: convolution, filters: 2, kernel: 3, "
      "pad: 1}, {name: l, kind: mean_squared_error}]}");
  const auto messages = device_halos(model, {{3, 3}, model.layers.size()}, 4)[0].forward;
  REQUIRE(messages.size() == 4);
  // Columns first: 2 channels x 4 rows; then rows with the corners: 2 channels x 6 columns.
  CHECK(messages[0].dimension == 1);
  CHECK(messages[0].elements == 8);
  CHECK(messages[2].dimension == 0);
  CHECK(messages[2].elements == 12);
  CHECK(elements_of(messages) == 2 * (6 * 6 - 4 * 4));
  CHECK(elements_of(device_halos(model, {{3, 3}, model.layers.size()}, 0)[0].forward) == 2 * (5 * 5 - 4 * 4));
}

TEST_CASE("border_share counts the rows whose windows reach beyond a strip", "[models]") {
  const BorderShare same = border_share(one_convolution(64, 3, 1, 1), {4, 1});
  CHECK(same.forward == Approx(2 / 16.0));
  CHECK(same.backward == Approx(2 / 16.0));
  const BorderShare strided = border_share(one_convolution(64, 3, 2, 1), {4, 1});
  CHECK(strided.forward == Approx(1 / 8.0));
  CHECK(strided.backward == Approx(1 / 16.0));
  CHECK(border_share(one_convolution(64, 1, 1, 0), {4, 1}).forward == 0);
  CHECK(border_share(one_convolution(8, 3, 1, 1), {8, 1}).forward == 1);
}

namespace {

Model maps(const std::string& layers, int rows = 26) {
  const YamlNode node =
      parse_yaml("{name: m, source: s, input: [2, " + std::to_string(rows) + ", 12], layers: [" + layers +
                     ", {name: l, kind: mean_squared_error}]}",
                 "m.yaml");
  return read_model(YamlValue(node, ""));
}

const std::string kStrided = "{name: a, kind: convolution, filters: 3, kernel: 5, stride: 2, pad: 2}";

}  // namespace

TEST_CASE("the parts of a map cover it, and their windows are padded only at its ends", "[models]") {
  const Model model = maps(kStrided);
  const SpatialPartition partition{{4, 1}, 2};
  std::int64_t in = 0, out = 0;
  double share = 0;
  for (int device = 0; device < 4; ++device) {
    CAPTURE(device);
    const SpatialShard part = spatial_shard(model, partition, device);
    const ShardRows& rows = part.rows[0].at(0);
    in += part.model.layers[0].input[1];
    out += part.model.layers[0].output[1];
    share += part.share[1];
    const std::int64_t outputs = (rows.read.size() + rows.pad.before + rows.pad.after - 5) / 2 + 1;
    CHECK(outputs == rows.out.size());
    const std::int64_t back = (rows.in.size() + rows.pad_in.before + rows.pad_in.after - 5) / 2 + 1;
    CHECK(back == rows.reading.size());
    CHECK(rows.pad.before == (device == 0 ? 2 : 0));
    CHECK((rows.pad.after > 0) == (device == 3));
  }
  CHECK(in == 26);
  CHECK(out == 13);
  CHECK(share == Approx(1));
}

TEST_CASE("a halo box holds the rows that the target needs, with the corners exchanged before", "[models]") {
  const Model model = maps("{name: a, kind: convolution, filters: 3, kernel: 3, pad: 1}", 24);
  const SpatialPartition partition{{2, 2}, 2};
  const auto below = halo_box(model, partition, {0, false, 3, 1, true});  // columns first: own rows only
  CHECK(below[0].first == 12);
  CHECK(below[0].last == 24);
  CHECK(below[1].first == 5);
  CHECK(below[1].last == 6);
  const auto above =
      halo_box(model, partition, {0, false, 3, 0, true});  // then rows, with the column from the left
  CHECK(above[0].first == 11);
  CHECK(above[0].last == 12);
  CHECK(above[1].first == 5);
  CHECK(above[1].last == 12);
}

TEST_CASE("partitions that kernels cannot compute are refused with a reason", "[models][errors]") {
  const auto problem = [](const Model& model, const Parts& parts, std::int64_t batch = 2) {
    return kernel_problem(model, {parts, first_mixing_layer(model)}, batch);
  };
  CHECK(problem(maps(kStrided), {4, 1}) == "");
  CHECK(problem(maps("{name: p, kind: max_pool, kernel: 2}", 24), {2, 1}) == "");
  CHECK(problem(maps("{name: p, kind: max_pool, kernel: 3, stride: 2, pad: 1}", 24), {2, 1}) == "");
  CHECK(problem(maps("{name: p, kind: max_pool, kernel: 2}", 26), {2, 1}) == "");
  CHECK(problem(maps("{name: u, kind: up_sample, factor: 2}", 25), {2, 1}) ==
        "layer u (up_sample) reads rows of a neighbour device");
  CHECK(problem(maps(kStrided + ", {name: f, kind: reshape, shape: [234]}, {name: d, kind: dense, units: 4}"),
                {2, 1}) == "layer d, the first on whole samples, reads parts of unequal size");
  CHECK(
      problem(maps("{name: f, kind: reshape, shape: [624]}, {name: d, kind: dense, units: 4}"), {2, 1}, 3) ==
      "layer d, the first on whole samples, needs a multiple of 2 samples for 2 devices, got 3");
  // The samples are the input of the network, with no layer before them.
  CHECK(problem(maps("{name: f, kind: reshape, shape: [624]}, {name: d, kind: dense, units: 4}"), {2, 1}) ==
        "");
  CHECK(problem(maps("{name: f, kind: reshape, shape: [624]}, {name: d, kind: dense, units: 4}"), {5, 1},
                5) == "layer d, the first on whole samples, reads parts of unequal size");
}
