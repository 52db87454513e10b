#include "models/graph.hpp"

#include <algorithm>

namespace stepcast {
namespace {

bool has_trainable(const Layer& layer) {
  return std::any_of(layer.parameters.begin(), layer.parameters.end(),
                     [](const ParameterTensor& tensor) { return tensor.trainable; });
}

}  // namespace

std::vector<bool> backward_data_needed(const Model& model) {
  std::vector<bool> needed(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (const int input : model.layers[i].inputs) {
      if (input < 0) continue;
      const auto below = static_cast<std::size_t>(input);
      if (needed[below] || has_trainable(model.layers[below])) needed[i] = true;
    }
  }
  return needed;
}

std::vector<int> consumers(const Model& model) {
  std::vector<int> readers(model.layers.size());
  for (const Layer& layer : model.layers) {
    for (const int input : layer.inputs) {
      if (input >= 0) ++readers[static_cast<std::size_t>(input)];
    }
  }
  return readers;
}

}  // namespace stepcast
