#pragma once

#include "forecast/discrepancy.hpp"
#include "forecast/measured/training_log.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// The measurements in the runs of a file, a row for each run or step, with columns as in results.csv.
/// `workers`, the swept keys and columns with a point in their name (`strategy.bucket`) are the point;
/// without them, the one that `point` names. Of the columns that follow from the time of a step, the first
/// with a number is the measurement; parts of a step (is_part_of_step) and memory_bytes are measurements of
/// their own. `spread` and `source` belong to the whole row. Rows of one point are repeats, of which the
/// median counts; those with `kept` false do not.
/// @throws InputError for a file without such columns, or a value of 0 or less
std::vector<Measurement> measurements_of(const MeasuredRuns& runs, const Scenario& scenario);

/// A line that names the columns of numbers from which nothing is learned; empty if there are none.
std::string unused_columns_note(const MeasuredRuns& runs, const Scenario& scenario);

/// The scenario with points for all of its measurements. A value that all points of the sweep have in common
/// is a measurement's too. Without `calibrate` and with no value for
/// strategy.compute_factor, the measurement on the fewest devices that follows from the time of a step is fed
/// in as that factor, unless more than half of the simulated step there is communication, which says nothing
/// about layers.
/// @throws InputError for a column that is not computed from one point alone, and for a point without a value
///         of a key that the sweep varies
Scenario with_measured_points(Scenario scenario, Library& library);

}  // namespace stepcast
