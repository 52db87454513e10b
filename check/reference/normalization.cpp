#include <cmath>

#include "check/reference/reference.hpp"

namespace stepcast::reference {
namespace {

constexpr double kEpsilon = 1e-5;

/// Elements with the same `group_of(i)` are normalized together; element i uses scale and shift number
/// `channel_of(i)`.
struct Groups {
  bool batch_norm;
  std::size_t channels, inner, count;

  std::size_t group_of(std::size_t i) const { return batch_norm ? channel_of(i) : i / channels; }
  std::size_t channel_of(std::size_t i) const { return i / inner % channels; }
};

Groups groups(const Case& c) {
  if (c.layer.kind == LayerKind::layer_norm) {
    const std::size_t features = c.layer.input.back();
    return {false, features, 1, output_elements(c) / features};
  }
  const std::size_t channels = c.layer.input.front();
  return {true, channels, count(c.layer.input) / channels, channels};
}

struct Statistics {
  Array mean, deviation;  ///< per group; deviation = sqrt(variance + epsilon)
  double size;            ///< elements per group
};

Statistics statistics(const Array& x, const Groups& g) {
  Statistics s{Array(g.count), Array(g.count), 1.0 * x.size() / g.count};
  for (std::size_t i = 0; i < x.size(); ++i) s.mean[g.group_of(i)] += x[i] / s.size;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - s.mean[g.group_of(i)];
    s.deviation[g.group_of(i)] += difference * difference / s.size;
  }
  for (double& d : s.deviation) d = std::sqrt(d + kEpsilon);
  return s;
}

}  // namespace

Array normalization(const Case& c) {
  const Groups g = groups(c);
  const Array& x = c.inputs[0];
  const Statistics s = statistics(x, g);
  Array y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double normal = (x[i] - s.mean[g.group_of(i)]) / s.deviation[g.group_of(i)];
    y[i] = c.parameters[0][g.channel_of(i)] * normal + c.parameters[1][g.channel_of(i)];
  }
  return y;
}

void normalization_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const Groups g = groups(c);
  const Array& x = c.inputs[0];
  const Statistics s = statistics(x, g);
  Array sum(g.count),
      weighted(g.count);  // per group: sum of d = scale dy, and of d times the normalized value
  const auto normal = [&](std::size_t i) {
    return (x[i] - s.mean[g.group_of(i)]) / s.deviation[g.group_of(i)];
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = output_gradient[i] * c.parameters[0][g.channel_of(i)];
    sum[g.group_of(i)] += d;
    weighted[g.group_of(i)] += d * normal(i);
    gradients.parameters[0][g.channel_of(i)] += output_gradient[i] * normal(i);
    gradients.parameters[1][g.channel_of(i)] += output_gradient[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t group = g.group_of(i);
    const double d = output_gradient[i] * c.parameters[0][g.channel_of(i)];
    gradients.inputs[0][i] = (d - (sum[group] + normal(i) * weighted[group]) / s.size) / s.deviation[group];
  }
}

}  // namespace stepcast::reference
