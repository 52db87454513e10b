#pragma once

#include <string>
#include <vector>

#include "report/plots/loss_curves.hpp"
#include "report/results/results.hpp"
#include "report/text/text_table.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {

/// The table for the terminal: samples to the target loss, samples per second, and the time to the target
/// loss.
Table learning_table(const std::vector<LearnedPoint>& points, double target_loss);

/// learning-per-second.csv: learning per record, records per second and their product for each point. The
/// learning of a record is 1 / (records to the target loss), so the product is 1 / (seconds to the target
/// loss) at the mean rate. Cells of learning are empty where the target is never reached, or was reached
/// before the first step.
Results learning_per_second(const std::string& scenario, const std::vector<LearnedPoint>& points);

/// Time to the target loss against workers, with a curve for each combination of the other keys.
/// @param scenario  its name
CurvePlot time_to_target_plot(const std::string& scenario, const std::vector<LearnedPoint>& points,
                              double target_loss);

}  // namespace stepcast
