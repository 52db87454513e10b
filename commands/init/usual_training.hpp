#pragma once

#include <filesystem>

#include "commands/init/starting_files.hpp"
#include "strategies/options/strategy.hpp"

namespace stepcast {

enum class Workers { given, may_grow };

/// Reduces the batch until the first point fits into memory. If none does, tries the same with recomputation,
/// with kind zero in stage 3, and, if the workers were not given, with twice as many at the first point. If
/// nothing fits, the batch is 1.
/// @param file  is written and removed again
void fit_memory(const std::filesystem::path& file, const Strategy& strategy, Workers workers,
                ScenarioStart& start);

}  // namespace stepcast
