#include "runtime/memory/parameter_layout.hpp"

#include <algorithm>

namespace stepcast {

ParameterLayout::ParameterLayout(const Network& network) {
  const ParameterView& all = network.all_parameters();
  Start start;
  const auto& layers = network.model().layers;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (!network.contains(layer)) continue;
    auto view = network.parameters(layer).begin();
    for (const ParameterTensor& tensor : layers[layer].parameters) {
      if (!tensor.trainable) continue;
      start.stored = view->value - all.value;
      arrays_.push_back(start);
      start.model += tensor.elements();
      ++view;
    }
  }
  arrays_.push_back({start.model, static_cast<std::int64_t>(all.elements)});
}

Slice ParameterLayout::stored(const Slice& of_model) const {
  return {stored(of_model.begin), stored(of_model.end)};
}

std::int64_t ParameterLayout::stored(std::int64_t of_model) const {
  if (of_model >= model_elements()) return stored_elements();
  const auto after =
      std::upper_bound(arrays_.begin(), arrays_.end(), of_model,
                       [](std::int64_t element, const Start& start) { return element < start.model; });
  const Start& start = *(after - 1);
  return std::min(start.stored + of_model - start.model, after->stored);
}

}  // namespace stepcast
