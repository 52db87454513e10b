#pragma once

#include <vector>

#include "core/typed_numbers.hpp"
#include "models/cost/kernel_choice.hpp"
#include "models/cost/pass_cost.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// The cost of each layer of the model.
/// @param choice  the kernels that are counted for the rule of KernelShares
std::vector<LayerCost> layer_costs(const Model& model, const KernelChoice& choice = {});

/// Work of the forward pass of one sample.
Flops forward_flops(const Model& model);
/// Work of the forward and both backward passes of one sample. It is a little less than three times the
/// forward work, because first layers have no backward-data pass.
Flops training_flops(const Model& model);

}  // namespace stepcast
