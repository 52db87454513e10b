#pragma once

#include <filesystem>
#include <string>

#include "commands/init/starting_files.hpp"
#include "models/cost/device.hpp"
#include "models/network/model.hpp"
#include "strategies/options/strategy.hpp"

namespace stepcast {

/// The precision in which people train a network on a device, of those that the device has: transformers in
/// bf16, or else f16; others in TF32, which PyTorch's convolutions have by default, or else f16; f32 without
/// tensor cores.
std::string usual_precision(const Model& model, const Device& device);

/// The value of `kernels`: the precision, and for a transformer flash attention, where the device has it, and
/// AdamW by foreach kernels. Empty: all as by default.
std::string kernels_text(const Model& model, const Device& device, const std::string& precision);

/// Reduces the batch until the first point fits into memory. If none does, tries the same with recomputation,
/// and with kind zero in stage 3. If nothing fits, the batch is 1.
/// @param file  is written and removed again
void fit_memory(const std::filesystem::path& file, const Strategy& strategy, ScenarioStart& start);

}  // namespace stepcast
