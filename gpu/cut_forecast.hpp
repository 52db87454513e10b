#pragma once

#include <vector>

#include "models/cut.hpp"
#include "models/device.hpp"
#include "models/trace.hpp"

namespace stepcast {

/// What the device with the largest part computes where samples are cut so, from captures of whole ones: by
/// the rule of docs/cut-times.md, without the exchange of halos. From the first layer that mixes all
/// positions on, it has its share of the samples whole.
/// @throws InputError where the model cannot be cut so
std::vector<Trace> traces_of_part(const std::vector<Trace>& traces, const Model& model, const Parts& parts,
                                  const Device& device);

}  // namespace stepcast
