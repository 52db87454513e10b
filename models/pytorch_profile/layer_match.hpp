#pragma once

#include <string>
#include <vector>

#include "models/network/model.hpp"
#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

/// For each layer of a model, the indices of its operators. Layers that do no work have none.
using LayerMatch = std::vector<std::vector<int>>;

/// Finds an order of the model's layers, each after its inputs, whose kinds and (where recorded) shapes are
/// those of the operators. A program may run branches in another order than the model's file lists them.
/// Where several orders fit, one that goes on along a branch is preferred to one that jumps.
/// @param batch  samples of a step; 0: not known, no shapes are compared
/// @throws InputError one line that names the first operator that no order places
LayerMatch match_layers(const std::string& file, const std::vector<NetworkOperator>& operators,
                        const Model& model, std::int64_t batch);

/// The batch that the shapes tell; 0 if there are none.
std::int64_t recorded_batch(const std::vector<NetworkOperator>& operators);

}  // namespace stepcast
