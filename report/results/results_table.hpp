#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {

/// The table that `run` prints: the `leading` columns (the keys of the sweep, or `point`) that differ, then
/// workers, step and its parts, throughput, speed-up, efficiency, the comparison with the best alternative,
/// memory, fits and bottleneck. The parts add up to the step. Columns without values are left out, and so are
/// waits that no point has. Each column has one unit (ms, GB, %), which the header names; all times have the
/// same unit; `ratio_to_best` has its interval beside it. For a row with `step_seconds_low` and
/// `step_seconds_high` (forecast interval, 5 % and 95 %) the step reads `251.3 [243.1 .. 262.0]`.
Table results_table(const Results& results, const std::vector<std::string>& leading = {"point"});

/// A sentence about the interval of the step and its parts in the table; empty without an interval.
std::string interval_note(const Results& results, bool has_model_error);

/// The second table, with the figures of this strategy and of trainings with faults, such as staleness,
/// minutes of a sweep, tasks per second or hours lost to restarts. Columns with only zeros are left out.
Table own_columns_table(const Results& results, const std::vector<std::string>& leading = {"point"});

}  // namespace stepcast
