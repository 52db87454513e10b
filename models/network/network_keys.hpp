#pragma once

#include "core/keys.hpp"

namespace stepcast {

// The keys of a network file (docs/reference/networks.md). The readers of this folder use these tables.
const Keys& model_keys();
const Keys& layer_item_keys();     ///< of a layer of any kind, or of a block that is repeated
const Keys& network_layer_keys();  ///< of a layer of any kind; keys_of_kind gives those of one
const Keys& repeat_keys();         ///< of a block that is repeated
const Keys& pad_keys();
const Keys& transformer_stack_keys();

}  // namespace stepcast
