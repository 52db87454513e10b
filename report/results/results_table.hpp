#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {

/// The table that `run` prints: the `leading` columns (the keys of the sweep, or `point`), then workers,
/// step, compute, exposed communication, throughput, speed-up, efficiency, the comparison with the best
/// alternative, memory, fits and bottleneck.
/// Columns without values are left out. Each column has one unit (ms, GB, %), which the header names; all
/// times have the same unit; `ratio_to_best` has its interval beside it. For a row with `step_seconds_low`
/// and `step_seconds_high` (forecast interval, 5 % and 95 %) the step reads `251.3 [243.1 .. 262.0]`.
Table results_table(const Results& results, const std::vector<std::string>& leading = {"point"});

/// The second table, with the figures of this strategy and of trainings with faults, such as staleness,
/// minutes of a sweep, tasks per second or hours lost to restarts. Columns with only zeros are left out.
Table own_columns_table(const Results& results, const std::vector<std::string>& leading = {"point"});

}  // namespace stepcast
