#include <algorithm>

#include "kernels/network/network.hpp"

namespace stepcast {
namespace {

/// Number of edges that leave each layer.
std::vector<int> edges_from_each(const Model& model) {
  std::vector<int> edges(model.layers.size());
  for (const Layer& layer : model.layers) {
    for (const int from : layer.inputs) {
      if (from >= 0) ++edges[from];
    }
  }
  return edges;
}

bool is_trainable_norm(const Layer& layer) {
  return layer.kind == LayerKind::batch_norm &&
         std::ranges::any_of(layer.parameters, [](const ParameterTensor& one) { return one.trainable; });
}

}  // namespace

std::vector<FusedNorm> fused_norms(const Model& model) {
  const std::vector<int> edges = edges_from_each(model);
  const auto only_edge = [&](int layer) { return layer >= 0 && edges[layer] == 1; };
  std::vector<FusedNorm> found;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (model.layers[i].kind != LayerKind::relu) continue;
    FusedNorm group{.relu = i};
    int norm = model.layers[i].inputs.front();
    if (!only_edge(norm)) continue;
    const Layer& before = model.layers[norm];
    if (before.kind == LayerKind::add && before.inputs.size() == 2) {
      group.add = norm;
      group.added = std::min(before.inputs[0], before.inputs[1]);
      norm = std::max(before.inputs[0], before.inputs[1]);
      if (group.added < 0 || !only_edge(norm)) continue;
    }
    group.norm = norm;
    if (is_trainable_norm(model.layers[group.norm])) found.push_back(group);
  }
  return found;
}

}  // namespace stepcast
