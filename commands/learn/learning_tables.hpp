#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plots/loss_curves.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"
#include "scenarios/reader/read_learning.hpp"
#include "scenarios/reader/scenario.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {

/// The table for the terminal: loss, samples per second and, with a target loss, samples and time to it.
Table learning_table(const std::vector<LearnedPoint>& points, std::optional<double> target_loss);

/// learning-per-second.csv: learning per record, records per second and their product for each point. The
/// learning of a record is 1 / (records to the target loss), so the product is 1 / (seconds to the target
/// loss) at the mean rate. Cells of learning are empty without a target loss, and where it is never
/// reached or was reached before the first step.
Results learning_per_second(const std::string& scenario, const std::vector<LearnedPoint>& points);

/// Time to the target loss against workers, with a curve for each combination of the other keys.
/// @param scenario  its name
/// @param forecast  of the same points, if they ran for real
CurvePlot time_to_target_plot(const std::string& scenario, const std::vector<LearnedPoint>& points,
                              double target_loss, const std::vector<LearnedPoint>& forecast = {});

/// The seeds in which a claim about two points holds.
struct TrendResult {
  std::string point, over, quantity, relation, source;
  std::size_t seeds = 0;  ///< seeds with which both points were trained
  std::size_t holds = 0;  ///< seeds in which the claim holds
  double median_point = 0,
         median_over = 0;  ///< medians of the quantity; infinite if the target is not reached

  double share() const { return seeds == 0 ? 0 : 1.0 * holds / seeds; }
  /// "yes" if the claim holds in at least 90 % of the seeds, "no" in at most 10 %, else "open".
  std::string verdict() const;
};

/// @throws InputError for a trend whose `point` or `over` is no point of the sweep, or several
void check_trends(const Scenario& scenario, const std::vector<LearningTrend>& trends);

/// Compares the two points of each trend seed by seed. A training that never reaches the target loss takes
/// infinitely long; two such trainings are equal, so the claim does not hold.
/// @throws InputError as check_trends
std::vector<TrendResult> trend_results(const Scenario& scenario, const std::vector<LearningTrend>& trends,
                                       const std::vector<LearnedRun>& runs);

/// trends.csv: a row for each trend.
Results to_results(const std::string& scenario, const std::vector<TrendResult>& trends);

/// The table for the terminal.
Table trend_table(const std::vector<TrendResult>& trends);

}  // namespace stepcast
