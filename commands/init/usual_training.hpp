#pragma once

#include <filesystem>

#include "commands/init/starting_files.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {

/// What the user did not give.
struct MayChange {
  bool strategy = false, workers = false;
};

/// Reduces the batch until the first point fits into memory. If none does, tries the same with recomputation,
/// then with kind zero in stage 3, if that is the kind or it may change, and with twice as many workers at
/// the first point, if they may change; then with layers and sequences divided. If nothing fits, the batch
/// is 1.
/// @param file  where the scenario will stand
void fit_memory(const std::filesystem::path& file, Library& library, MayChange may_change,
                int devices_per_node, ScenarioStart& start);

}  // namespace stepcast
