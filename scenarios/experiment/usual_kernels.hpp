#pragma once

#include <string>

#include "core/yaml.hpp"
#include "models/cost/device.hpp"
#include "models/network/model.hpp"

namespace stepcast {

constexpr int kFirstYear = 2012, kLastYear = 2040;  ///< values of `year`

/// The document's `year`; by default the last one: libraries of today. @throws InputError
int year_of(const YamlNode& document);

/// The precision in which people train a network on a device, of those that the device has: transformers in
/// bf16, or else f16; others in TF32, which PyTorch's convolutions have by default, or else f16; f32 without
/// tensor cores. Half precision is usual from 2018 on (Apex), bf16 from 2021, TF32 from 2020 (PyTorch 1.7).
std::string usual_precision(const Model& model, const Device& device, int year = kLastYear);

/// The value of `kernels`: the precision, and for a transformer flash attention, where the device has it, and
/// AdamW by foreach kernels. Before PyTorch 2.0, 2023, attention is eager and each tensor is updated alone;
/// its scaled_dot_product_attention has FlashAttention 2 since 2.2, 2024. Empty: all as by default.
std::string kernels_text(const Model& model, const Device& device, const std::string& precision,
                         int year = kLastYear);

/// True if a strategy trains a transformer in bf16 or f16 under autocast, as PyTorch's
/// DistributedDataParallel does: parameters, and so their gradients, stay in fp32.
/// @param strategy  the mapping `strategy:`
bool takes_autocast(const YamlNode& strategy);

/// Sets the keys of `kernels` that the document does not give to the usual ones, where layer times are
/// derived and it names neither `kernels.precision` nor `strategy.compression`, which half precision
/// excludes, nor `strategy.precision: f32`: those of a transformer in half precision, with
/// `strategy.precision: mixed` and, on replicas of the whole network, autocast and fp32 gradients; of another
/// network in half precision with `mixed`, else in TF32, where the device has it. `year` of the document
/// chooses what was usual then.
void apply_usual_kernels(YamlNode& document, const Model& model, const Device& device);

}  // namespace stepcast
