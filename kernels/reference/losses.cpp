#include <algorithm>
#include <cmath>

#include "kernels/reference/kinds.hpp"

namespace stepcast::reference {
namespace {

/// log(sum of exp) over one row.
double log_sum(const Array& x, std::size_t begin, std::size_t length) {
  const double top = *std::max_element(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                       x.begin() + static_cast<std::ptrdiff_t>(begin + length));
  double sum = 0;
  for (std::size_t i = 0; i < length; ++i) sum += std::exp(x[begin + i] - top);
  return top + std::log(sum);
}

double softmax_loss(const Case& c) {
  const Array& x = c.inputs[0];
  const auto classes = static_cast<std::size_t>(c.layer.input.back());
  double sum = 0;
  for (std::size_t row = 0; row < c.targets.size(); ++row) {
    sum += log_sum(x, row * classes, classes) - x[row * classes + static_cast<std::size_t>(c.targets[row])];
  }
  return sum / static_cast<double>(c.targets.size());
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
  return {sum / static_cast<double>(c.inputs[0].size())};
}

void loss_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const Array& x = c.inputs[0];
  const double weight = output_gradient.at(0);
  Array& dx = gradients.inputs[0];
  if (c.layer.kind != LayerKind::softmax_cross_entropy) {
    for (std::size_t i = 0; i < x.size(); ++i)
      dx[i] = weight * element_slope(c, i) / static_cast<double>(x.size());
    return;
  }
  const auto classes = static_cast<std::size_t>(c.layer.input.back());
  const double scale = weight / static_cast<double>(c.targets.size());
  for (std::size_t row = 0; row < c.targets.size(); ++row) {
    const double total = log_sum(x, row * classes, classes);
    for (std::size_t i = 0; i < classes; ++i)
      dx[row * classes + i] = scale * std::exp(x[row * classes + i] - total);
    dx[row * classes + static_cast<std::size_t>(c.targets[row])] -= scale;
  }
}

}  // namespace stepcast::reference
