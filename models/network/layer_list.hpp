#pragma once

#include "core/yaml.hpp"
#include "models/network/model.hpp"

namespace stepcast {

constexpr double kMostElements = 1e15;  ///< limit of one array, so that products of sizes fit 64 bits

/// Refuses an array of more than kMostElements elements.
void check_size(const YamlValue& value, const Shape& shape);

/// Reads the list `layers` into the model, whose `input` is set. An item is a layer, or a block of layers
/// that is repeated: `{repeat: 32, name: block, layers: [...]}`. The layers of repetition I are called
/// `blockI_NAME`. Inside a block, `inputs` may name layers of the same repetition without this prefix,
/// `previous` (the layer before the repetition), and any layer above the block.
/// @throws InputError
void read_layers(const YamlValue& list, Model& model);

}  // namespace stepcast
