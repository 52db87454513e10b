#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "report/text/text_table.hpp"
#include "scenarios/reader/read_learning.hpp"
#include "scenarios/reader/scenario.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {

/// The seeds in which a claim about two points holds.
struct TrendResult {
  std::string point, over, quantity, relation, source;
  std::size_t seeds = 0;  ///< seeds with which both points were trained
  std::size_t holds = 0;  ///< seeds in which the claim holds
  double median_point = 0,
         median_over = 0;  ///< medians of the quantity; infinite if the target is not reached

  double share() const { return seeds == 0 ? 0 : static_cast<double>(holds) / static_cast<double>(seeds); }
  /// "yes" if the claim holds in at least 90 % of the seeds, "no" in at most 10 %, else "open".
  std::string verdict() const;
};

/// Compares the two points of each trend seed by seed. A training that never reaches the target loss takes
/// infinitely long; two such trainings are equal, so the claim does not hold.
/// @throws InputError for a trend of a point that the sweep does not have
std::vector<TrendResult> trend_results(const Scenario& scenario, const std::vector<LearningTrend>& trends,
                                       const std::vector<LearnedRun>& runs);

/// trends.csv: a row for each trend.
Results to_results(const std::string& scenario, const std::vector<TrendResult>& trends);

/// The table for the terminal.
Table trend_table(const std::vector<TrendResult>& trends);

}  // namespace stepcast
