#pragma once

#include "core/yaml.hpp"
#include "models/network/layer.hpp"

namespace stepcast {

/// Refuses an array of more than 1e15 elements, so that products of sizes fit 64 bits.
void check_size(const YamlValue& value, const Shape& shape);

/// Reads the list `layers` of a network. An item is a layer, or a block of layers that is repeated:
/// `{repeat: 32, name: block, layers: [...]}`. The layers of repetition I are called `blockI_NAME`. Inside a
/// block, `inputs` may name layers of the same repetition without this prefix, `previous` (the layer before
/// the repetition), and any layer above the block.
/// @param input  shape of one sample
/// @throws InputError
std::vector<Layer> read_layers(const YamlValue& list, const Shape& input);

}  // namespace stepcast
