#include "models/cost/pass_cost.hpp"

namespace stepcast {

Bytes PassCost::bytes(std::int64_t batch, Bytes element) const {
  return (static_cast<double>(batch) * activations + parameters) * element;
}

double internal_elements(const Layer& layer) {
  const double time = layer.input.empty() ? 0 : static_cast<double>(layer.input.front());
  const double cells = time * static_cast<double>(layer.hidden) * (layer.bidirectional ? 2 : 1);
  if (layer.kind == LayerKind::lstm) return 5 * cells;
  if (layer.kind == LayerKind::gru) return 4 * cells;
  if (layer.kind == LayerKind::attention) return static_cast<double>(layer.heads) * time * time;
  if (layer.kind == LayerKind::experts)
    return expert_rows(layer) *
           static_cast<double>(3 * layer.hidden + 2 * layer.input.back());  // gate and hidden units, their
                                                                            // product, input and output rows
  if (layer.kind == LayerKind::softmax_cross_entropy) return element_count(layer.input);
  return 0;
}

}  // namespace stepcast
