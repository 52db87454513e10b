#pragma once

#include <functional>
#include <vector>

#include "forecast/forecast.hpp"
#include "report/results/published.hpp"
#include "report/results/results.hpp"
#include "report/statistics/sensitivity.hpp"

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

/// Text about a point's largest part of the step time and the doubled resource that shortens the step most.
std::string bottleneck(const Row& row, const std::map<Doubled, Row>& doubled);

/// Removes published figures whose point is not in the sweep, if `--set` has changed the sweep. @return a
/// line about each of them
std::vector<std::string> leave_out_lost_figures(Scenario& scenario);

/// Compares every published figure whose point has results with its forecast. Throws InputError for an
/// unknown point or column.
std::vector<PublishedRow> compared_with_published(const Scenario& scenario,
                                                  const std::vector<std::size_t>& points,
                                                  const Simulations& all);

/// A check of each point's row as soon as it is simulated, so that a wrong column name does not surface only
/// at the end of a long run. Throws InputError for an unknown point; the returned function throws InputError
/// for an unknown column.
std::function<void(std::size_t point, const Row& row)> published_check(const Scenario& scenario);

/// The figure whose sensitivity to the assumptions is reported: the first published figure of kind
/// `predicted`, or the last point's step time.
/// @param points  those that have results
struct ReportedFigure {
  std::size_t point = 0;
  std::string column = "step_seconds";
};
ReportedFigure reported_figure(const Scenario& scenario, const std::vector<std::size_t>& points);

/// The share of a column's variance over the draws at a point that each assumption explains. Empty if there
/// are too few draws or the column has no number in some draw.
std::vector<Sensitivity> variance_shares(const Scenario& scenario, const Simulations& all, std::size_t point,
                                         const std::string& column);

}  // namespace stepcast
