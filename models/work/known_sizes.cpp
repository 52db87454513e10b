#include "models/work/known_sizes.hpp"

#include <algorithm>

#include "models/network/layer.hpp"

namespace stepcast {

bool knows_sizes(const Model& model) {
  return model.input != Shape{1} || std::ranges::any_of(model.layers, [](const Layer& layer) {
           return layer.kind != LayerKind::measured || layer.output != Shape{1};
         });
}

}  // namespace stepcast
