#pragma once

#include <functional>
#include <vector>

#include "forecast/forecast.hpp"
#include "report/results/published.hpp"
#include "report/results/results.hpp"
#include "report/statistics/sensitivity.hpp"

namespace stepcast {

/// Adds the columns speedup and efficiency to every row of every draw. The base is the point with the fewest
/// workers among those that agree in all swept keys except the workers.
void add_scaling(const Scenario& scenario, const std::vector<std::size_t>& points, Simulations& all);

/// The content of results.csv, a row per point. With assumptions each figure is the median over the draws,
/// and the main figures have columns `..._low` and `..._high` (5 % and 95 % quantiles).
Results summarized_results(const Scenario& scenario, const std::vector<std::size_t>& points,
                           const Simulations& all);

/// Text about a point's largest part of the step time and the doubled resource that shortens the step most.
std::string bottleneck(const Row& row, const std::map<Doubled, Row>& doubled);

/// Compares every published figure with its forecast. Throws InputError for an unknown point or column.
std::vector<PublishedRow> compared_with_published(const Scenario& scenario,
                                                  const std::vector<std::size_t>& points,
                                                  const Simulations& all);

/// A check of each point's row as soon as it is simulated, so that a wrong column name does not surface only
/// at the end of a long run. Throws InputError for an unknown point; the returned function throws InputError
/// for an unknown column.
std::function<void(std::size_t point, const Row& row)> published_check(const Scenario& scenario);

/// The figure whose sensitivity to the assumptions is reported: the first published figure of kind
/// `predicted`, or the last point's step time.
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
