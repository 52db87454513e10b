#include <catch2/catch.hpp>

#include "kernels/network/network.hpp"
#include "kernels/onednn/backend.hpp"
#include "networks.hpp"

using namespace stepcast;
using namespace stepcast::test;

namespace {

/// Runs the same network by the reference implementations, layer after layer.
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
        c.inputs.push_back(from < 0 ? input : outputs[from]);
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
        Array& sum = to_output[cases[i].layer.inputs[k]];
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

/// Mean over the elements of the variance of the first layer's gradient over mini-batches.
double gradient_variance(std::int64_t batch) {
  constexpr int kBatches = 400;
  const auto backend = make_onednn_backend();
  Network network(*backend, two_layer_model(5), {.batch = batch});
  std::vector<double> sums, squares;
  for (int i = 0; i < kBatches; ++i) {
    network.fill_with_synthetic_data(i + 1);
    run_forward_and_backward(network);
    const std::vector<float> gradient = network.kernel(0).read_gradient(0);
    sums.resize(gradient.size());
    squares.resize(gradient.size());
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      sums[k] += gradient[k];
      squares[k] += gradient[k] * gradient[k];
    }
  }
  double variance = 0;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const double mean = sums[k] / kBatches;
    variance += squares[k] / kBatches - mean * mean;
  }
  return variance / static_cast<double>(sums.size());
}

}  // namespace

TEST_CASE("the variance of a mini-batch's gradient is inversely proportional to its size",
          "[kernels][network]") {
  const double of_four = gradient_variance(4);
  CHECK(of_four / gradient_variance(16) == Approx(4).epsilon(0.15));
  CHECK(of_four / gradient_variance(64) == Approx(16).epsilon(0.15));
}

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
