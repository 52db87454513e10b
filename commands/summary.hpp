#pragma once

#include <functional>
#include <vector>

#include "commands/forecast.hpp"
#include "report/published.hpp"
#include "report/results.hpp"
#include "report/sensitivity.hpp"

namespace stepcast {

/// Speed-up and efficiency of every row, against the point with the fewest workers among those that agree in
/// all swept keys but the workers; per draw.
void add_scaling(const Scenario& scenario, const std::vector<std::size_t>& points, Simulations& all);

/// results.csv: a row a point. With assumptions each figure is the median over draws, and the main ones have
/// columns
/// `..._low` and `..._high` (5 % and 95 %).
Results summarized_results(const Scenario& scenario, const std::vector<std::size_t>& points,
                           const Simulations& all);

/// What bounds a point and what would help most, in words.
std::string bottleneck(const Row& row, const std::map<Doubled, Row>& doubled);

/// Every published figure beside its forecast. Throws InputError for a point or a column that is not there.
std::vector<PublishedRow> compared_with_published(const Scenario& scenario,
                                                  const std::vector<std::size_t>& points,
                                                  const Simulations& all);

/// What to ask of each point's row as it comes in, so that a wrong column is not found at the end of a long
/// run. Throws InputError at once for a point that is not there; what it returns throws it for a column.
std::function<void(std::size_t point, const Row& row)> published_check(const Scenario& scenario);

/// What matters most: point and column of the first published figure that is predicted, else the last point's
/// step time.
struct Judged {
  std::size_t point = 0;
  std::string column = "step_seconds";
};
Judged judged_figure(const Scenario& scenario, const std::vector<std::size_t>& points);

/// Share of the variance of a column at a point that each assumption explains; empty where that cannot be
/// said.
std::vector<Sensitivity> explained(const Scenario& scenario, const Simulations& all, std::size_t point,
                                   const std::string& column);

/// The result of one point in every draw.
std::vector<double> over_draws(const Simulations& all, std::size_t point, const std::string& column);

}  // namespace stepcast
