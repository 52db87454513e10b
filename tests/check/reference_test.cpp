#include <catch2/catch.hpp>

#include "check/cases.hpp"

using namespace stepcast;
using namespace stepcast::test;

namespace {

double weighted_output(const Case& c, const Array& weights) {
  const Array y = reference::forward(c);
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += weights.at(i) * y[i];
  return sum;
}

/// Central difference of sum(weights * output) with respect to one number of the case.
double slope(Case& c, const Array& weights, double& number) {
  constexpr double kStep = 1e-5;
  const double middle = number;
  number = middle + kStep;
  const double above = weighted_output(c, weights);
  number = middle - kStep;
  const double below = weighted_output(c, weights);
  number = middle;
  return (above - below) / (2 * kStep);
}

/// The error of a central difference is about step^2 (1e-10) and rounding / step (1e-11), times the size of
/// the sums.
constexpr double kMargin = 1e-7;

void check_gradient(Case& c, const Array& weights, Array& numbers, const Array& gradient) {
  REQUIRE(numbers.size() == gradient.size());
  const std::size_t stride = numbers.size() / 60 + 1;  // tests a sample of the numbers, to save time
  for (std::size_t i = 0; i < numbers.size(); i += stride) {
    INFO("element " << i);
    CHECK(gradient[i] == Approx(slope(c, weights, numbers[i])).margin(kMargin));
  }
}

}  // namespace

TEST_CASE("every reference gradient is the slope of its forward pass", "[kernels][reference]") {
  for (const NamedCase& named : processor_cases()) {
    INFO(named.name);
    Case c = named.value;
    const Array weights = uniform_array(reference::forward(c).size(), 99);
    const reference::Gradients gradients = reference::backward(c, weights);
    for (std::size_t k = 0; k < c.parameters.size(); ++k) {
      INFO("parameter " << k);
      check_gradient(c, weights, c.parameters[k], gradients.parameters[k]);
    }
    if (c.layer.kind == LayerKind::embedding) continue;  // row indices have no gradient
    for (std::size_t k = 0; k < c.inputs.size(); ++k) {
      INFO("input " << k);
      check_gradient(c, weights, c.inputs[k], gradients.inputs[k]);
    }
  }
}

TEST_CASE("a convolution with a single 1 in its kernel shifts the image", "[kernels][reference]") {
  const Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}};
  Case c;
  c.layer = convolution_layer({1, 3, 3}, 1, window, false);
  c.inputs = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
  c.parameters = {{1, 0, 0, 0, 0, 0, 0, 0, 0}};  // cross-correlation: y[i][j] = x[i-1][j-1]
  CHECK(reference::forward(c) == Array{0, 0, 0, 0, 1, 2, 0, 4, 5});
}

TEST_CASE("an LSTM whose gates are half open halves its memory at every step", "[kernels][reference]") {
  Case c;
  c.layer = recurrent_layer(LayerKind::lstm, {2, 1}, 1, false, true);
  c.inputs = {{0, 0}};
  c.parameters = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 1, 0}};  // only the candidate has a bias
  const double first = 0.5 * std::tanh(1.0), second = 0.5 * first + first;
  const Array y = reference::forward(c);
  CHECK(y[0] == Approx(0.5 * std::tanh(first)));
  CHECK(y[1] == Approx(0.5 * std::tanh(second)));
}

TEST_CASE("a GRU whose update gate is shut takes the candidate", "[kernels][reference]") {
  Case c;
  c.layer = recurrent_layer(LayerKind::gru, {1, 1}, 1, false, true);
  c.inputs = {{0.25}};
  c.parameters = {{0, 0, 2}, {0, 0, 0}, {-800, 0, 0}};
  CHECK(reference::forward(c)[0] == Approx(std::tanh(0.5)));
}

TEST_CASE("attention over equal keys is the mean of the values, causal attention of the earlier ones",
          "[kernels][reference]") {
  Case c;
  c.layer = attention_layer({2, 3}, 1, GENERATE(false, true));
  c.inputs = {{1, 1, 10, 1, 1, 20}};  // query, key, value of two tokens
  const Array y = reference::forward(c);
  CHECK(y[0] == Approx(c.layer.causal ? 10 : 15));
  CHECK(y[1] == Approx(15));
}
