#include "models/partition/spatial_shard.hpp"

#include <catch2/catch.hpp>

#include "core/yaml.hpp"

using namespace stepcast;

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
