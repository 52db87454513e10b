#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "check/layer_bench.hpp"
#include "core/error.hpp"
#include "core/yaml.hpp"
#include "kernels/network/dropout_mask.hpp"
#include "kernels/network/network.hpp"
#include "kernels/onednn/backend.hpp"
#include "models/loader.hpp"
#include "networks.hpp"

using namespace stepcast;

using namespace stepcast::test;

namespace {

/// fp32 sums of up to about 200 products of numbers below 1 carry an error of about sqrt(200) x 6e-8;
/// oneDNN's vector exp, tanh and erf are accurate to about 1e-6. Batch norm over few elements divides by
/// small deviations.
constexpr double kMargin = 2e-5;

void check_near(const std::vector<float>& found, const Array& expected) {
  REQUIRE(found.size() == expected.size());
  double worst = 0, size = 1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    REQUIRE(std::isfinite(found[i]));  // std::max would ignore a NaN
    worst = std::max(worst, std::abs(found[i] - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  CHECK(worst <= kMargin * size);
}

/// The key with which the kernel draws its mask: layer 0, step 0.
Case with_dropout_key(Case c) {
  c.dropout_key = dropout_key(kBenchSeed, 0, 0);
  return c;
}

}  // namespace

TEST_CASE("every kind of layer is tested, and those that oneDNN lacks are refused", "[kernels][onednn]") {
  std::set<LayerKind> tried{
      LayerKind::rms_norm,         LayerKind::silu,     LayerKind::swiglu, LayerKind::concatenate,
      LayerKind::rotary_embedding, LayerKind::measured, LayerKind::scale,  LayerKind::slice,
      LayerKind::state_space};
  const auto backend = make_onednn_backend();
  for (const LayerKind kind : tried) {
    Layer layer;
    layer.name = "a";
    layer.kind = kind;
    CHECK_THROWS_WITH(
        backend->make_kernel({.layer = &layer, .batch = 1, .inputs = {}}),
        std::string("layer a: kind ") + to_string(kind) + " is not supported by the oneDNN backend");
  }
  for (const NamedCase& named : processor_cases()) tried.insert(named.value.layer.kind);
  for (int kind = 0; kind <= static_cast<int>(LayerKind::measured); ++kind) {
    INFO(to_string(static_cast<LayerKind>(kind)));
    CHECK(tried.contains(static_cast<LayerKind>(kind)));
  }
}

TEST_CASE("every oneDNN layer computes what the plain loops compute", "[kernels][onednn]") {
  const auto backend = make_onednn_backend();
  for (const NamedCase& named : processor_cases()) {
    INFO(named.name);
    const Case c = with_dropout_key(named.value);
    LayerBench bench(*backend, c);
    const Array expected = reference::forward(c);
    bench.kernel->run(Pass::forward);
    const bool is_loss = bench.kernel->targets() != nullptr;
    if (is_loss) {
      CHECK(bench.kernel->loss() == Approx(expected[0]).epsilon(kMargin));
    } else {
      check_near(bench.kernel->output().read(), expected);
    }
    const Array weights = is_loss ? Array{1} : uniform_array(expected.size(), 99);
    bench.connect(*backend, is_loss ? std::vector<Array>{} : std::vector<Array>{weights});
    bench.kernel->run(Pass::backward_data);
    bench.kernel->run(Pass::backward_weights);
    const reference::Gradients gradients = reference::backward(c, weights);
    for (std::size_t k = 0; k < c.inputs.size() && c.layer.kind != LayerKind::embedding; ++k) {
      INFO("input " << k);
      check_near(bench.kernel->input_gradient(k)->read(), gradients.inputs[k]);
    }
    for (std::size_t k = 0; k < c.parameters.size(); ++k) {
      INFO("parameter " << k);
      if (c.layer.parameters[k].trainable)
        check_near(bench.kernel->read_gradient(k), gradients.parameters[k]);
    }
  }
}

TEST_CASE("a second run of the passes overwrites the gradients", "[kernels][onednn]") {
  const auto backend = make_onednn_backend();
  for (const NamedCase& named : processor_cases()) {
    if (named.value.parameters.empty()) continue;
    INFO(named.name);
    LayerBench bench(*backend, named.value);
    bench.connect(*backend, {uniform_array(reference::forward(named.value).size(), 99)});
    std::vector<float> first;
    for (int run = 0; run < 2; ++run) {
      for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
        bench.kernel->run(pass);
      if (run == 0) first = bench.kernel->read_gradient(0);
    }
    CHECK(bench.kernel->read_gradient(0) == first);
  }
}

TEST_CASE("gradients of several consumers are summed before they are used", "[kernels][onednn]") {
  const auto backend = make_onednn_backend();
  for (const NamedCase& named : processor_cases()) {
    const Case c = with_dropout_key(named.value);
    if (!c.targets.empty() || c.layer.kind == LayerKind::embedding) continue;
    INFO(named.name);
    LayerBench bench(*backend, c);
    const std::size_t size = reference::forward(c).size();
    const Array one = uniform_array(size, 50), two = uniform_array(size, 51), three = uniform_array(size, 52);
    bench.connect(*backend, {one, two, three});
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
      bench.kernel->run(pass);
    Array sum(size);
    for (std::size_t i = 0; i < size; ++i) sum[i] = one[i] + two[i] + three[i];
    check_near(bench.kernel->input_gradient(0)->read(), reference::backward(c, sum).inputs[0]);
  }
}

TEST_CASE("batch norm's running statistics follow those of the batch", "[kernels][onednn]") {
  const auto backend = make_onednn_backend();
  Case c;
  c.layer = norm_layer(LayerKind::batch_norm, {1});
  c.batch = 2;
  c.inputs = {{1, 3}};
  c.parameters = {{1}, {0}, {10}, {1}};
  LayerBench bench(*backend, c);
  bench.kernel->run(Pass::forward);
  CHECK(bench.kernel->read_parameter(2).at(0) == Approx(0.9 * 10 + 0.1 * 2));
  CHECK(bench.kernel->read_parameter(3).at(0) == Approx(0.9 * 1 + 0.1 * 1));
}

TEST_CASE("dropout drops its share, keeps the mean, and draws another mask every step", "[kernels][onednn]") {
  const auto backend = make_onednn_backend();
  Case c;
  c.layer = plain_layer(LayerKind::dropout, {40000}, 0.3);
  c.inputs = {Array(40000, 1)};
  LayerBench bench(*backend, c);
  bench.kernel->run(Pass::forward);
  const std::vector<float> first = bench.kernel->output().read();
  const double dropped = std::count(first.begin(), first.end(), 0.f);
  CHECK(dropped / 40000 == Approx(0.3).margin(0.01));  // four standard deviations are 0.0092
  CHECK(*std::max_element(first.begin(), first.end()) == Approx(1 / 0.7));
  bench.kernel->run(Pass::forward);
  CHECK(bench.kernel->output().read() != first);
}

TEST_CASE("a layer that oneDNN lacks is refused by name", "[kernels][onednn][errors]") {
  const auto backend = make_onednn_backend();
  Case c;
  c.layer = plain_layer(LayerKind::rms_norm, {1, 4, 4});
  c.layer.name = "norm1";
  c.inputs = {Array(16)};
  CHECK_THROWS_AS(LayerBench(*backend, c), InputError);
}

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
