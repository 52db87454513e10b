#include "models/work/model_flops.hpp"

#include <algorithm>

#include "models/network/layer.hpp"

namespace stepcast {

std::int64_t tokens_of_sample(const Model& model) {
  const bool image = model.input.size() > 2;
  return !image && has_layers(model, LayerKind::attention) ? model.input.front() : 0;
}

Flops palm_flops(const Model& model) {
  if (has_layers(model, LayerKind::experts)) return {};
  const double tokens = tokens_of_sample(model);
  double sum = 6.0 * trainable_parameters(model) * tokens;
  for (const Layer& layer : model.layers) {
    if (layer.kind == LayerKind::attention)
      sum += 6.0 * (query_features(layer) + layer.output.back()) * tokens * tokens;
  }
  return {sum};
}

bool knows_sizes(const Model& model) {
  return model.input != Shape{1} || std::ranges::any_of(model.layers, [](const Layer& layer) {
           return layer.kind != LayerKind::measured || layer.output != Shape{1};
         });
}

}  // namespace stepcast
