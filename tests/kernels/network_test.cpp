#include "kernels/network.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "cases.hpp"

using namespace stepcast;
using namespace stepcast::test;

namespace {

Layer named(Layer layer, std::string name, std::vector<int> inputs) {
  layer.name = std::move(name);
  layer.inputs = std::move(inputs);
  return layer;
}

/// A residual block: the output of `bn1` goes two ways and comes together in `add`.
Model residual_model() {
  const Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}};
  Model model;
  model.name = "residual";
  model.input = {3, 6, 6};
  model.layers = {
      named(convolution_layer({3, 6, 6}, 16, window, false), "conv1", {-1}),
      named(norm_layer(LayerKind::batch_norm, {16, 6, 6}), "bn1", {0}),
      named(convolution_layer({16, 6, 6}, 16, window, true), "conv2", {1}),
      named(plain_layer(LayerKind::tanh, {16, 6, 6}), "tanh2", {2}),
      named(plain_layer(LayerKind::add, {16, 6, 6}), "add", {3, 1}),
      named(pool_layer(LayerKind::average_pool, {16, 6, 6}, {{6, 6}, {6, 6}, {0, 0}, {0, 0}}), "pool", {4})};
  Layer flatten = plain_layer(LayerKind::reshape, {16, 1, 1});
  flatten.output = {16};
  model.layers.push_back(named(flatten, "flatten", {5}));
  model.layers.push_back(named(dense_layer({16}, 5, true), "dense", {6}));
  model.layers.push_back(named(loss_layer(LayerKind::softmax_cross_entropy, {5}), "loss", {7}));
  return model;
}

Model two_layer_model(std::int64_t features) {
  Model model;
  model.name = "toy";
  model.input = {features};
  model.layers = {named(dense_layer({features}, 16, true), "dense1", {-1}),
                  named(plain_layer(LayerKind::relu, {16}), "relu1", {0}),
                  named(dense_layer({16}, 2, true), "dense2", {1}),
                  named(loss_layer(LayerKind::softmax_cross_entropy, {2}), "loss", {2})};
  return model;
}

/// The same network as plain loops, layer after layer.
struct PlainNetwork {
  explicit PlainNetwork(Network& network) : model(network.model()) {
    input = as_doubles(network.input().read());
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      cases.push_back({.layer = model.layers[i],
                       .batch = network.input().shape().front(),
                       .inputs = {},
                       .parameters = {},
                       .targets = {}});
      for (std::size_t k = 0; k < model.layers[i].parameters.size(); ++k) {
        cases[i].parameters.push_back(as_doubles(network.kernel(i).read_parameter(k)));
      }
      if (Tensor* targets = network.kernel(i).targets()) cases[i].targets = as_doubles(targets->read());
    }
  }

  double loss() {
    outputs.clear();
    for (Case& c : cases) {
      c.inputs.clear();
      for (const int from : c.layer.inputs) {
        c.inputs.push_back(from < 0 ? input : outputs[static_cast<std::size_t>(from)]);
      }
      outputs.push_back(reference::forward(c));
    }
    return outputs.back()[0];
  }

  /// Gradients of the parameters of every layer.
  std::vector<std::vector<Array>> gradients() {
    loss();
    std::vector<Array> to_output;
    for (const Array& output : outputs) to_output.emplace_back(output.size());
    to_output.back()[0] = 1;
    std::vector<std::vector<Array>> result(cases.size());
    for (std::size_t i = cases.size(); i-- > 0;) {
      const reference::Gradients g = reference::backward(cases[i], to_output[i]);
      result[i] = g.parameters;
      for (std::size_t k = 0; k < g.inputs.size(); ++k) {
        if (cases[i].layer.inputs[k] < 0) continue;
        Array& sum = to_output[static_cast<std::size_t>(cases[i].layer.inputs[k])];
        for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += g.inputs[k][j];
      }
    }
    return result;
  }

  Model model;
  Array input;
  std::vector<Case> cases;
  std::vector<Array> outputs;
};

void run_forward_and_backward(Network& network) {
  const std::size_t layers = network.model().layers.size();
  for (std::size_t i = 0; i < layers; ++i) {
    if (network.has(i, Pass::forward)) network.run(i, Pass::forward);
  }
  for (std::size_t i = layers; i-- > 0;) {
    for (const Pass pass : {Pass::backward_data, Pass::backward_weights}) {
      if (network.has(i, pass)) network.run(i, pass);
    }
  }
}

}  // namespace

TEST_CASE("a network with an addition has the loss and the gradients of the plain loops",
          "[kernels][network]") {
  const auto backend = make_onednn_backend();
  Network network(*backend, residual_model(), {.batch = 3});
  run_forward_and_backward(network);
  PlainNetwork plain(network);
  CHECK(network.loss() == Approx(plain.loss()).epsilon(1e-5));
  const auto expected = plain.gradients();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t k = 0; k < expected[i].size(); ++k) {
      if (!network.model().layers[i].parameters[k].trainable) continue;
      INFO(network.model().layers[i].name << " " << k);
      const std::vector<float> found = network.kernel(i).read_gradient(k);
      // fp32 through nine layers: relative errors of about 1e-6 a layer.
      for (std::size_t j = 0; j < found.size(); ++j)
        CHECK(found[j] == Approx(expected[i][k][j]).margin(2e-5));
    }
  }
}

TEST_CASE("the plain network's gradients are the slope of its loss", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  Network network(*backend, residual_model(), {.batch = 2});
  PlainNetwork plain(network);
  const auto gradients = plain.gradients();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    for (std::size_t k = 0; k < gradients[i].size(); ++k) {
      Array& numbers = plain.cases[i].parameters[k];
      for (std::size_t j = 0; j < numbers.size(); j += numbers.size() / 3 + 1) {
        const double middle = numbers[j];
        numbers[j] = middle + 1e-5;
        const double above = plain.loss();
        numbers[j] = middle - 1e-5;
        const double below = plain.loss();
        numbers[j] = middle;
        CHECK(gradients[i][k][j] == Approx((above - below) / 2e-5).margin(1e-7));
      }
    }
  }
}

TEST_CASE("training on a separable task brings the loss near zero", "[kernels][network]") {
  const auto kind = GENERATE(Optimizer::Kind::sgd, Optimizer::Kind::adagrad, Optimizer::Kind::rmsprop,
                             Optimizer::Kind::adam);
  const auto backend = make_onednn_backend();
  const double rate = kind == Optimizer::Kind::sgd ? 0.1 : 0.02;
  Network network(*backend, two_layer_model(4),
                  {.batch = 64, .optimizer = {.kind = kind, .learning_rate = rate}});
  const std::vector<float> x = network.input().read();
  std::vector<float> side;  // of a plane
  for (std::size_t i = 0; i < x.size(); i += 4) side.push_back(x[i] + x[i + 1] - x[i + 2] > 0 ? 1.f : 0.f);
  network.kernel(3).targets()->write(side);
  network.step();
  const double first = network.loss();
  for (int i = 0; i < 300; ++i) network.step();
  CAPTURE(static_cast<int>(kind), first);
  CHECK(first > 0.3);
  CHECK(network.loss() < 0.1);
}

TEST_CASE("gradients of all layers lie in one piece, in the model's order", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  Network network(*backend, residual_model(), {.batch = 1});
  const ParameterView* last = nullptr;
  std::size_t arrays = 0;
  for (std::size_t i = 0; i < network.model().layers.size(); ++i) {
    for (const ParameterView& view : network.parameters(i)) {
      if (last != nullptr) {
        const auto gap = view.gradient - (last->gradient + last->elements);
        CHECK(gap >= 0);
        CHECK(gap < 16);
        CHECK(view.value - last->value == view.gradient - last->gradient);
      }
      last = &view;
      ++arrays;
    }
  }
  CHECK(arrays ==
        7);  // two scale and shift, two weights and a bias of convolutions, weight and bias of dense
}

TEST_CASE("the same seed gives the same network after several steps", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  std::vector<std::vector<float>> weights;
  for (int run = 0; run < 2; ++run) {
    Network network(*backend, residual_model(), {.batch = 2, .seed = 5});
    for (int i = 0; i < 3; ++i) network.step();
    weights.push_back(network.kernel(2).read_parameter(0));
  }
  CHECK(weights[0] == weights[1]);
}

TEST_CASE("a step runs every pass that the network has, once and in order", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  Network network(*backend, residual_model(), {.batch = 1});
  std::map<Pass, std::vector<std::size_t>> seen;
  network.step([&](std::size_t layer, Pass pass) { seen[pass].push_back(layer); });
  CHECK(seen[Pass::forward] == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(seen[Pass::backward_weights] == std::vector<std::size_t>{7, 2, 0});
  CHECK(seen[Pass::update] == std::vector<std::size_t>{0, 1, 2, 7});
  CHECK(seen[Pass::backward_data].front() == 8);
  CHECK(seen[Pass::backward_data].back() == 1);
}
