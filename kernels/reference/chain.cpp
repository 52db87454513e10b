#include "kernels/reference/chain.hpp"

namespace stepcast::reference {

Chain chain(const Case& c, std::size_t sample, std::size_t direction) {
  const Layer& layer = c.layer;
  return {.sample = sample,
          .direction = direction,
          .steps = static_cast<std::size_t>(layer.input.front()),
          .features = static_cast<std::size_t>(layer.input.back()),
          .hidden = static_cast<std::size_t>(layer.hidden),
          .directions = layer.bidirectional ? std::size_t{2} : std::size_t{1},
          .gates = layer.kind == LayerKind::lstm ? std::size_t{4} : std::size_t{3},
          .whole_sequence = layer.output.size() == 2};
}

double from_input(const Case& c, const Chain& chain, std::size_t k, std::size_t unit) {
  double sum = c.parameters[2][unit];
  for (std::size_t i = 0; i < chain.features; ++i) {
    sum += c.parameters[0][unit * chain.features + i] * c.inputs[0][chain.input(k) + i];
  }
  return sum;
}

double from_hidden(const Case& c, const Chain& chain, std::size_t unit, const Array& h) {
  double sum = 0;
  for (std::size_t j = 0; j < chain.hidden; ++j) sum += c.parameters[1][unit * chain.hidden + j] * h[j];
  return sum;
}

void ChainGradients::spread_to_input(std::size_t k, std::size_t unit, double gradient) const {
  gradients.parameters[2][unit] += gradient;
  for (std::size_t i = 0; i < chain.features; ++i) {
    gradients.parameters[0][unit * chain.features + i] += gradient * c.inputs[0][chain.input(k) + i];
    gradients.inputs[0][chain.input(k) + i] += gradient * c.parameters[0][unit * chain.features + i];
  }
}

void ChainGradients::spread_to_hidden(std::size_t unit, double gradient, const Array& h,
                                      Array& h_gradient) const {
  for (std::size_t j = 0; j < chain.hidden; ++j) {
    gradients.parameters[1][unit * chain.hidden + j] += gradient * h[j];
    h_gradient[j] += gradient * c.parameters[1][unit * chain.hidden + j];
  }
}

}  // namespace stepcast::reference
