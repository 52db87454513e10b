#include <algorithm>
#include <cmath>
#include <numbers>

#include "check/reference/reference.hpp"
#include "kernels/network/dropout_mask.hpp"

namespace stepcast::reference {

Array dense(const Case& c) {
  const std::size_t in = c.layer.input.back();
  const std::size_t out = c.layer.output.back();
  Array y(output_elements(c));
  for (std::size_t row = 0; row < y.size() / out; ++row) {
    for (std::size_t o = 0; o < out; ++o) {
      double sum = c.parameters.size() > 1 ? c.parameters[1][o] : 0;
      for (std::size_t i = 0; i < in; ++i) sum += c.parameters[0][o * in + i] * c.inputs[0][row * in + i];
      y[row * out + o] = sum;
    }
  }
  return y;
}

void dense_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const std::size_t in = c.layer.input.back();
  const std::size_t out = c.layer.output.back();
  for (std::size_t row = 0; row < output_gradient.size() / out; ++row) {
    for (std::size_t o = 0; o < out; ++o) {
      const double dy = output_gradient[row * out + o];
      if (c.parameters.size() > 1) gradients.parameters[1][o] += dy;
      for (std::size_t i = 0; i < in; ++i) {
        gradients.parameters[0][o * in + i] += dy * c.inputs[0][row * in + i];
        gradients.inputs[0][row * in + i] += dy * c.parameters[0][o * in + i];
      }
    }
  }
}

namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double value(const Layer& layer, double x) {
  switch (layer.kind) {
    case LayerKind::leaky_relu:
      return x > 0 ? x : layer.coefficient * x;
    case LayerKind::sigmoid:
      return sigmoid(x);
    case LayerKind::tanh:
      return std::tanh(x);
    case LayerKind::elu:
      return x > 0 ? x : layer.coefficient * std::expm1(x);
    case LayerKind::gelu:
      return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
    default:
      return x > 0 ? x : 0;
  }
}

double slope(const Layer& layer, double x) {
  const double density =
      std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);  // density of the standard normal distribution
  switch (layer.kind) {
    case LayerKind::leaky_relu:
      return x > 0 ? 1 : layer.coefficient;
    case LayerKind::sigmoid:
      return sigmoid(x) * (1 - sigmoid(x));
    case LayerKind::tanh:
      return 1 - std::tanh(x) * std::tanh(x);
    case LayerKind::elu:
      return x > 0 ? 1 : layer.coefficient * std::exp(x);
    case LayerKind::gelu:
      return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
    default:
      return x > 0 ? 1 : 0;
  }
}

double kept(const Case& c, std::size_t i) {
  const double share = c.layer.coefficient;
  const bool dropped = dropout_bits(c.dropout_key, i) < dropout_threshold(share);
  return dropped || share >= 1 ? 0 : 1 / (1 - share);
}

/// Index of the input element that output element i of an up_sample repeats.
std::size_t source_of(const Case& c, std::size_t i) {
  const Shape& in = c.layer.input;
  const Shape& out = c.layer.output;
  std::size_t index = 0, scale = 1;
  for (std::size_t d = out.size(); d-- > 0;) {
    const auto factor = d == 0 ? std::size_t{1} : static_cast<std::size_t>(c.layer.window.kernel[d - 1]);
    index += i % out[d] / factor * scale;
    i /= out[d];
    scale *= in[d];
  }
  return index + i * scale;
}

}  // namespace

Array activation(const Case& c) {
  Array y;
  for (const double x : c.inputs[0]) y.push_back(value(c.layer, x));
  return y;
}

void activation_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for (std::size_t i = 0; i < output_gradient.size(); ++i) {
    gradients.inputs[0][i] = output_gradient[i] * slope(c.layer, c.inputs[0][i]);
  }
}

Array add(const Case& c) {
  Array y(c.inputs[0].size());
  for (const Array& x : c.inputs) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  }
  return y;
}

void add_backward(const Case&, const Array& output_gradient, Gradients& gradients) {
  for (Array& dx : gradients.inputs) dx = output_gradient;
}

Array up_sample(const Case& c) {
  Array y(output_elements(c));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = c.inputs[0][source_of(c, i)];
  return y;
}

void up_sample_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for (std::size_t i = 0; i < output_gradient.size(); ++i) {
    gradients.inputs[0][source_of(c, i)] += output_gradient[i];
  }
}

Array dropout(const Case& c) {
  Array y(c.inputs[0].size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = kept(c, i) * c.inputs[0][i];
  return y;
}

void dropout_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for (std::size_t i = 0; i < output_gradient.size(); ++i)
    gradients.inputs[0][i] = kept(c, i) * output_gradient[i];
}

namespace {

/// Logarithm of the sum of exponentials of one row.
double log_sum(const Array& x, std::size_t begin, std::size_t length) {
  const double top = *std::max_element(x.begin() + begin, x.begin() + (begin + length));
  double sum = 0;
  for (std::size_t i = 0; i < length; ++i) sum += std::exp(x[begin + i] - top);
  return top + std::log(sum);
}

double softmax_loss(const Case& c) {
  const Array& x = c.inputs[0];
  const std::size_t classes = c.layer.input.back();
  double sum = 0;
  for (std::size_t row = 0; row < c.targets.size(); ++row) {
    sum += log_sum(x, row * classes, classes) - x[row * classes + static_cast<std::size_t>(c.targets[row])];
  }
  return sum / c.targets.size();
}

double element_loss(const Case& c, std::size_t i) {
  const double x = c.inputs[0][i], t = c.targets[i];
  if (c.layer.kind == LayerKind::mean_squared_error) return (x - t) * (x - t);
  return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
}

double element_slope(const Case& c, std::size_t i) {
  const double x = c.inputs[0][i], t = c.targets[i];
  if (c.layer.kind == LayerKind::mean_squared_error) return 2 * (x - t);
  return 1 / (1 + std::exp(-x)) - t;
}

}  // namespace

Array loss(const Case& c) {
  if (c.layer.kind == LayerKind::softmax_cross_entropy) return {softmax_loss(c)};
  double sum = 0;
  for (std::size_t i = 0; i < c.inputs[0].size(); ++i) sum += element_loss(c, i);
  return {sum / c.inputs[0].size()};
}

void loss_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const Array& x = c.inputs[0];
  const double weight = output_gradient.at(0);
  Array& dx = gradients.inputs[0];
  if (c.layer.kind != LayerKind::softmax_cross_entropy) {
    for (std::size_t i = 0; i < x.size(); ++i) dx[i] = weight * element_slope(c, i) / x.size();
    return;
  }
  const std::size_t classes = c.layer.input.back();
  const double scale = weight / c.targets.size();
  for (std::size_t row = 0; row < c.targets.size(); ++row) {
    const double total = log_sum(x, row * classes, classes);
    for (std::size_t i = 0; i < classes; ++i)
      dx[row * classes + i] = scale * std::exp(x[row * classes + i] - total);
    dx[row * classes + static_cast<std::size_t>(c.targets[row])] -= scale;
  }
}

namespace {

void update_one(const Optimizer& o, double g, double t, double& w, double* state[2]) {
  switch (o.kind) {
    case Optimizer::Kind::sgd: {
      if (o.momentum == 0) {
        w -= o.learning_rate * g;
        return;
      }
      *state[0] = o.momentum * *state[0] + g;
      w -= o.learning_rate * *state[0];
      return;
    }
    case Optimizer::Kind::adagrad:
      *state[0] += g * g;
      w -= o.learning_rate * g / (std::sqrt(*state[0]) + o.epsilon);
      return;
    case Optimizer::Kind::rmsprop:
      *state[0] = o.decay * *state[0] + (1 - o.decay) * g * g;
      w -= o.learning_rate * g / (std::sqrt(*state[0]) + o.epsilon);
      return;
    case Optimizer::Kind::adam: {
      *state[0] = o.momentum * *state[0] + (1 - o.momentum) * g;
      *state[1] = o.decay * *state[1] + (1 - o.decay) * g * g;
      const double first = *state[0] / (1 - std::pow(o.momentum, t));
      const double second = *state[1] / (1 - std::pow(o.decay, t));
      w -= o.learning_rate * first / (std::sqrt(second) + o.epsilon);
    }
  }
}

}  // namespace

void update(const Optimizer& optimizer, const Array& gradient, std::int64_t step, Array& value,
            std::vector<Array>& states) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    double* state[2] = {nullptr, nullptr};
    for (std::size_t s = 0; s < states.size(); ++s) state[s] = &states[s][i];
    update_one(optimizer, gradient[i], step, value[i], state);
  }
}

}  // namespace stepcast::reference
