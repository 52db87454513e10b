#pragma once

#include <string>
#include <vector>

#include "report/results.hpp"
#include "report/table.hpp"

namespace stepcast {

/// The table that `run` prints: the `leading` columns (the keys of the sweep, or `point`), then workers,
/// step, compute, exposed communication, throughput, speed-up, efficiency, memory, fits and bottleneck.
/// Columns without any value are left out. One unit a column (ms, GB, %), named in the header; all times
/// share one. Where a row holds `step_seconds_low` and `step_seconds_high` (forecast interval, 5 % and 95 %),
/// the step reads `251.3 [243.1 .. 262.0]`.
Table results_table(const Results& results, const std::vector<std::string>& leading = {"point"});

/// The second table: what only this strategy, or a training with faults, has (staleness, minutes of a sweep,
/// tasks a second, hours lost to restarts ...). No columns where there is nothing but zeros.
Table own_columns_table(const Results& results, const std::vector<std::string>& leading = {"point"});

}  // namespace stepcast
