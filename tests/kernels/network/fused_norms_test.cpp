#include <catch2/catch.hpp>

#include "core/yaml.hpp"
#include "kernels/network/network.hpp"
#include "models/loader.hpp"
#include "networks.hpp"

using namespace stepcast;

namespace {

Model model_of(const std::string& layers) {
  const YamlNode node = parse_yaml("name: m\nsource: test\ninput: [2, 4, 4]\nlayers:\n" + layers +
                                       "  - {name: loss, kind: mean_squared_error}\n",
                                   "m.yaml");
  return read_model(YamlValue(node, ""));
}

const std::string kStart = R"(
  - {name: conv, kind: convolution, filters: 4, kernel: 1}
  - {name: bn, kind: batch_norm}
)";

double numbers(const Shape& shape) {
  double product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

}  // namespace

TEST_CASE("a norm is fused with the ReLU that alone reads it, and with an addition between them",
          "[kernels][fused]") {
  const auto alone = fused_norms(model_of(kStart + "  - {name: relu, kind: relu}\n"));
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].norm == 1);
  CHECK(alone[0].relu == 2);
  CHECK(alone[0].add == -1);
  const std::string sum = R"(
  - {name: other, kind: convolution, filters: 4, kernel: 1}
  - {name: bn2, kind: batch_norm}
  - {name: sum, kind: add, inputs: [bn, bn2]}
  - {name: relu, kind: relu}
)";
  const auto added = fused_norms(model_of(kStart + sum));
  REQUIRE(added.size() == 1);
  CHECK(added[0].norm == 3);  // the later one, which runs when the other term is there
  CHECK(added[0].added == 1);
  CHECK(added[0].add == 4);
  CHECK(added[0].relu == 5);
}

TEST_CASE("a norm is not fused if another layer reads its output or the sum", "[kernels][fused]") {
  const std::string after = GENERATE(
      as<std::string>{}, "  - {name: relu, kind: relu}\n  - {name: a, kind: add, inputs: [relu, bn]}\n",
      "  - {name: t, kind: tanh}\n  - {name: a, kind: add, inputs: [bn, t]}\n"
      "  - {name: relu, kind: relu}\n  - {name: b, kind: add, inputs: [relu, a]}\n",
      "  - {name: a, kind: add, inputs: [bn, bn]}\n  - {name: relu, kind: relu}\n",
      "  - {name: t, kind: tanh}\n  - {name: relu, kind: relu}\n");
  CHECK(fused_norms(model_of(kStart + after)).empty());
}

TEST_CASE("norms compute every ReLU of ResNet-50, so that 64 samples in bf16 move 15.6 GB in place of 21.8",
          "[kernels][fused]") {
  const Model model = load_model(std::string(STEPCAST_SOURCE_DIR) + "/models", "resnet50");
  const std::vector<FusedNorm> groups = fused_norms(model);
  CHECK(groups.size() == 49);
  const auto bytes_of = [&](std::size_t layer) { return 64 * 2 * numbers(model.layers[layer].output); };
  // Forward and backward, as cuda/sums.hpp and cuda/elements.hpp say.
  double separate = 0;
  std::vector<int> readers(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerKind kind = model.layers[i].kind;
    if (kind == LayerKind::batch_norm) separate += 8 * bytes_of(i);
    if (kind == LayerKind::relu) separate += 5 * bytes_of(i);
    if (kind == LayerKind::add) separate += 3 * bytes_of(i);
    for (const int from : model.layers[i].inputs) {
      if (from >= 0 && ++readers[from] > 1) separate += 3 * bytes_of(from);  // the sum of two gradients
    }
  }
  double fused = separate;
  int additions = 0;
  for (const FusedNorm& one : groups) {
    additions += one.add >= 0 ? 1 : 0;
    fused -= (one.add >= 0 ? 16 - (4 + 7) : 13 - (3 + 5)) * bytes_of(one.norm);
  }
  CHECK(additions == 16);
  CHECK(separate == Approx(21.8e9).epsilon(0.005));
  CHECK(fused == Approx(15.6e9).epsilon(0.005));
}
