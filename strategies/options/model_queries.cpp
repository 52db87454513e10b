#include "strategies/options/model_queries.hpp"

#include <algorithm>

namespace stepcast {

bool has_dropout(const Model& model) {
  return std::ranges::any_of(model.layers,
                             [](const Layer& layer) { return layer.kind == LayerKind::dropout; });
}

Bytes batch_norm_statistics(const Layer& layer) {
  if (layer.kind != LayerKind::batch_norm) return {};
  return {2.0 * 4 * static_cast<double>(layer.output.front())};
}

}  // namespace stepcast
