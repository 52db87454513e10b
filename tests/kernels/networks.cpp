#include "networks.hpp"

#include <catch2/catch.hpp>

namespace stepcast::test {
namespace {

Layer named(Layer layer, std::string name, std::vector<int> inputs) {
  layer.name = std::move(name);
  layer.inputs = std::move(inputs);
  return layer;
}

}  // namespace

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

void check_learns_plane(Backend& backend, const Optimizer& optimizer) {
  Network network(backend, two_layer_model(4), {.batch = 64, .optimizer = optimizer});
  const std::vector<float> x = network.input().read();
  std::vector<float> side;  // elements of a plane
  for (std::size_t i = 0; i < x.size(); i += 4) side.push_back(x[i] + x[i + 1] - x[i + 2] > 0 ? 1.f : 0.f);
  network.kernel(3).targets()->write(side);
  network.step();
  const double first = network.loss();
  for (int i = 0; i < 300; ++i) network.step();
  CHECK(first > 0.3);
  CHECK(network.loss() < 0.1);
}

}  // namespace stepcast::test
