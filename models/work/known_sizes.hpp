#pragma once

#include "models/network/model.hpp"

namespace stepcast {

/// False for a network that `stepcast import` wrote from a profile without shapes: all its layers are
/// measured, and each output is written as one number, because no size is known. Then its memory is not known
/// either.
bool knows_sizes(const Model& model);

}  // namespace stepcast
