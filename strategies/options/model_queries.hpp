#pragma once

#include "models/network/model.hpp"

namespace stepcast {

/// A network with dropout cannot compute its activations again: the second pass would drop other elements.
bool has_dropout(const Model& model);

/// Size of the statistics that workers sum for a batch-norm layer: sum and sum of squares of every channel,
/// fp32. 0 for other layers.
Bytes batch_norm_statistics(const Layer& layer);

}  // namespace stepcast
