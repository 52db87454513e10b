#pragma once

#include <cmath>

#include "kernels/reference/kinds.hpp"

namespace stepcast::reference {

/// One sample's way through one direction of a recurrent layer: steps k = 0, 1, ... in the order in which
/// they are computed. Parameters are weight_input {directions, gates, hidden, features}, weight_hidden
/// {directions, gates, hidden, hidden} and bias {directions, gates, hidden}.
struct Chain {
  std::size_t sample, direction, steps, features, hidden, directions, gates;
  bool whole_sequence;

  std::size_t time(std::size_t k) const { return direction == 0 ? k : steps - 1 - k; }
  std::size_t input(std::size_t k) const { return (sample * steps + time(k)) * features; }
  std::size_t unit(std::size_t gate, std::size_t h) const { return (direction * gates + gate) * hidden + h; }
  /// Outputs of step k start here; only the last step has any if the layer gives its last state.
  bool has_output(std::size_t k) const { return whole_sequence || k + 1 == steps; }
  std::size_t output(std::size_t k) const {
    const std::size_t row = whole_sequence ? sample * steps + time(k) : sample;
    return (row * directions + direction) * hidden;
  }
};

Chain chain(const Case& c, std::size_t sample, std::size_t direction);

template <class Visit>
void for_each_chain(const Case& c, const Visit& visit) {
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(c.batch); ++sample) {
    visit(chain(c, sample, 0));
    if (c.layer.bidirectional) visit(chain(c, sample, 1));
  }
}

/// W x + b of one gate at step k, without the recurrent part.
double from_input(const Case& c, const Chain& chain, std::size_t k, std::size_t unit);
/// U h.
double from_hidden(const Case& c, const Chain& chain, std::size_t unit, const Array& h);

/// Spreads gradients of sums onto what they were made from.
struct ChainGradients {
  const Case& c;
  const Chain& chain;
  Gradients& gradients;

  /// Of from_input at step k.
  void spread_to_input(std::size_t k, std::size_t unit, double gradient) const;
  /// Of from_hidden; the part of the last state is added to `h_gradient`.
  void spread_to_hidden(std::size_t unit, double gradient, const Array& h, Array& h_gradient) const;
};

inline double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace stepcast::reference
