#pragma once

#include <functional>

#include "report/results.hpp"
#include "validate/link_table.hpp"
#include "validate/validation.hpp"

namespace stepcast {

/// Writes the platform that the ranks measured (links.jsonl of the folder) and simulates every point on it
/// with the traces that they captured, a process each. @return rows of result columns, with `point`
/// @param meanwhile  called several times a second
/// @throws InputError for a point that cannot be run for real
Results predict_real(const Validation& validation, const ValidationOptions& options, const Cluster& cluster,
                     const std::filesystem::path& folder, const std::function<void()>& meanwhile);

}  // namespace stepcast
