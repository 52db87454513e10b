#pragma once

#include "scenarios/library.hpp"
#include "validate/machine_speed.hpp"
#include "validate/rank_run.hpp"
#include "validate/validation.hpp"

namespace stepcast {

/// Captures the traces that the points of a validation need, all ranks at once, so that they share the
/// machine as they will when they train; where they sleep instead, rank 0 alone. Rank 0 writes them.
/// @param speed  looked at before each turn, so that its pace is that of the captures; null: it is not
void capture_traces(const RankRun& run, const Validation& validation, const ValidationOptions& options,
                    Library& library, MachineSpeed* speed);

}  // namespace stepcast
