#pragma once

#include <string>

#include "core/yaml.hpp"
#include "models/cost/device.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// The precision in which people train a network on a device, of those that the device has: transformers in
/// bf16, or else f16; others in TF32, which PyTorch's convolutions have by default, or else f16; f32 without
/// tensor cores.
std::string usual_precision(const Model& model, const Device& device);

/// The value of `kernels`: the precision, and for a transformer flash attention, where the device has it, and
/// AdamW by foreach kernels. Empty: all as by default.
std::string kernels_text(const Model& model, const Device& device, const std::string& precision);

/// True if a strategy trains a transformer in bf16 or f16 under autocast, as PyTorch's
/// DistributedDataParallel does: parameters, and so their gradients, stay in fp32.
/// @param strategy  the mapping `strategy:`
bool takes_autocast(const YamlNode& strategy);

/// Sets the keys of `kernels` that the document does not give to the usual ones, where layer times are
/// derived and it names neither `kernels.precision` nor `strategy.compression`, which half precision
/// excludes, nor `strategy.precision: f32`: those of a transformer in half precision, with
/// `strategy.precision: mixed` and, on replicas without a mesh, autocast and fp32 gradients; of another
/// network in half precision with `mixed`, else in TF32, where the device has it.
void apply_usual_kernels(YamlNode& document, const Model& model, const Device& device);

}  // namespace stepcast
