#include <algorithm>
#include <cmath>
#include <numeric>

#include "check/reference/reference.hpp"

namespace stepcast::reference {
namespace {

/// One expert of one token.
struct Visit {
  std::size_t expert = 0;
  double gate = 0;
  Array gates, output;  ///< gate and hidden units before SwiGLU {2 x hidden}; output {features}
};

double standard_logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// weight {rows, row of x} times x.
Array product(const Array& weight, std::size_t first, std::size_t rows, const double* x, std::size_t length) {
  Array y(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < length; ++k) y[i] += weight[first + i * length + k] * x[k];
  }
  return y;
}

/// silu(gates) x hidden units.
Array swiglu(const Array& gates) {
  Array y(gates.size() / 2);
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = gates[i] * standard_logistic(gates[i]) * gates[y.size() + i];
  return y;
}

std::vector<Visit> visits_of(const Case& c, const double* x) {
  const std::size_t features = c.layer.input.back(), hidden = c.layer.hidden, experts = c.layer.experts;
  const Array scores = product(c.parameters[0], 0, experts, x, features);
  std::vector<std::size_t> order(experts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<Visit> visits;
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.layer.top); ++i) {
    Visit visit{order[i], std::exp(scores[order[i]]), {}, {}};
    sum += visit.gate;
    visit.gates = product(c.parameters[1], visit.expert * 2 * hidden * features, 2 * hidden, x, features);
    const Array inner = swiglu(visit.gates);
    visit.output = product(c.parameters[2], visit.expert * features * hidden, features, inner.data(), hidden);
    visits.push_back(std::move(visit));
  }
  for (Visit& visit : visits) visit.gate /= sum;
  return visits;
}

/// The place of a token in the arrays of a case.
struct Token {
  const double *x = nullptr, *y_error = nullptr;
  double* x_error = nullptr;
};

void router_backward(const Case& c, const std::vector<Visit>& visits, const Token& token,
                     Gradients& gradients) {
  const std::size_t features = c.layer.input.back();
  Array errors;
  double mean = 0;
  for (const Visit& visit : visits) {
    errors.push_back(std::inner_product(visit.output.begin(), visit.output.end(), token.y_error, 0.0));
    mean += visit.gate * errors.back();
  }
  for (std::size_t i = 0; i < visits.size(); ++i) {
    const double error = visits[i].gate * (errors[i] - mean);
    for (std::size_t k = 0; k < features; ++k) {
      const std::size_t weight = visits[i].expert * features + k;
      gradients.parameters[0][weight] += error * token.x[k];
      token.x_error[k] += error * c.parameters[0][weight];
    }
  }
}

void expert_backward(const Case& c, const Visit& visit, const Token& token, Gradients& gradients) {
  const std::size_t features = c.layer.input.back(), hidden = c.layer.hidden;
  const std::size_t output = visit.expert * features * hidden, first = visit.expert * 2 * hidden * features;
  const Array inner = swiglu(visit.gates);
  for (std::size_t h = 0; h < hidden; ++h) {
    double inner_error = 0;
    for (std::size_t k = 0; k < features; ++k) {
      const double error = visit.gate * token.y_error[k];
      gradients.parameters[2][output + k * hidden + h] += error * inner[h];
      inner_error += error * c.parameters[2][output + k * hidden + h];
    }
    const double gate = visit.gates[h], s = standard_logistic(gate);
    const double errors[] = {inner_error * visit.gates[hidden + h] * (s + gate * s * (1 - s)),
                             inner_error * gate * s};
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t row = first + (half * hidden + h) * features;
      for (std::size_t k = 0; k < features; ++k) {
        gradients.parameters[1][row + k] += errors[half] * token.x[k];
        token.x_error[k] += errors[half] * c.parameters[1][row + k];
      }
    }
  }
}

}  // namespace

Array experts(const Case& c) {
  const std::size_t features = c.layer.input.back();
  Array y(c.inputs[0].size());
  for (std::size_t first = 0; first < y.size(); first += features) {
    for (const Visit& visit : visits_of(c, &c.inputs[0][first])) {
      for (std::size_t k = 0; k < features; ++k) y[first + k] += visit.gate * visit.output[k];
    }
  }
  return y;
}

void experts_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const std::size_t features = c.layer.input.back();
  for (std::size_t first = 0; first < output_gradient.size(); first += features) {
    const Token token{&c.inputs[0][first], &output_gradient[first], &gradients.inputs[0][first]};
    const std::vector<Visit> visits = visits_of(c, token.x);
    router_backward(c, visits, token, gradients);
    for (const Visit& visit : visits) expert_backward(c, visit, token, gradients);
  }
}

}  // namespace stepcast::reference
