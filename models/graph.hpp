#pragma once

#include <vector>

#include "models/model.hpp"

namespace stepcast {

/// Per layer, whether its backward pass must go on to its inputs: true where a layer below has parameters.
std::vector<bool> backward_data_needed(const Model& model);

/// Per layer, how many layers read its output.
std::vector<int> consumers(const Model& model);

}  // namespace stepcast
