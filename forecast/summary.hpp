#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "forecast/forecast.hpp"
#include "report/results/published.hpp"
#include "report/results/results.hpp"
#include "report/statistics/statistics.hpp"

namespace stepcast {

/// The points that have results.
std::vector<std::size_t> simulated_points(const std::vector<std::size_t>& points, const Simulations& all);

/// Adds the columns speedup and efficiency to every row of every draw. Points that failed are left out. The
/// base is the point with the fewest
/// workers among those that agree in all swept keys except the workers.
void add_scaling(const Scenario& scenario, const std::vector<std::size_t>& points, Simulations& all);

/// The content of results.csv, a row per point. With assumptions each figure is the median over the draws,
/// and the main figures have columns `..._low` and `..._high` (5 % and 95 % quantiles). The row of a point
/// that failed has its swept keys and the column `failed`.
Results summarized_results(const Scenario& scenario, const std::vector<std::size_t>& points,
                           const Simulations& all);

/// Names the largest simulated part of a point's step, as a share of the step with the discrepancy term.
/// @param reported  the point's row of results.csv
std::string bottleneck(const Row& reported);

/// Removes published figures whose point is not in the sweep, if `--set` has changed the sweep. @return a
/// line about each of them
std::vector<std::string> leave_out_lost_figures(Scenario& scenario);

/// Compares every published figure whose point has results with its forecast. Throws InputError for an
/// unknown point or column.
std::vector<PublishedRow> compared_with_published(const Scenario& scenario,
                                                  const std::vector<std::size_t>& points,
                                                  const Simulations& all);

/// A check of each point's row as soon as it is simulated, so that a wrong column name of a published or
/// measured figure does not surface only at the end of a long run. Throws InputError for an unknown point;
/// the returned function throws InputError for an unknown column.
std::function<void(std::size_t point, const Row& row)> column_check(const Scenario& scenario);

/// A column of a point, or the ratio of that of two points.
struct ReportedFigure {
  std::size_t point = 0;
  std::string column = "step_seconds";
  std::optional<std::size_t> over = {};
};

/// The figure whose sensitivity to the assumptions is reported: that of kind `predicted` whose forecast is
/// farthest from the published value, as a factor; or the last point's step time.
/// @param points     those that have results
/// @param published  what compared_with_published returns
ReportedFigure reported_figure(const Scenario& scenario, const std::vector<std::size_t>& points,
                               const std::vector<PublishedRow>& published);

/// The share of a figure's variance over the draws that each assumption explains. Empty if there are too few
/// draws, if the column has no number in some draw, or if the values differ by rounding errors only.
std::vector<Sensitivity> variance_shares(const Scenario& scenario, const Simulations& all,
                                         const ReportedFigure& figure);

/// Keys of the scenario's own assumptions that explain less than a thousandth of the variance of the step
/// time at every point, so that their ranges move nothing. Of more than 256 points, 256 are looked at.
/// @param points  those that have results
std::vector<std::string> unmoving_assumptions(const Scenario& scenario, const Simulations& all,
                                              const std::vector<std::size_t>& points);

}  // namespace stepcast
