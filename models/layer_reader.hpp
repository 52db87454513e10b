#pragma once

#include "core/yaml.hpp"
#include "models/layer.hpp"

namespace stepcast {

/// Completes a layer whose name, kind, inputs and `input` shape are set from the keys that belong to its
/// kind. Throws InputError for unknown keys and for shapes that do not fit.
void read_layer(const YamlValue& value, Layer& layer);

}  // namespace stepcast
