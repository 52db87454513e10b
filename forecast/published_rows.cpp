#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "core/text.hpp"
#include "forecast/discrepancy.hpp"
#include "forecast/summary.hpp"
#include "report/statistics/statistics.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {
namespace {

/// The point that sets all of these values. Throws InputError if there is none, or no single one.
std::size_t find_point(const Scenario& scenario, const std::vector<Assignment>& values) {
  const std::vector<std::size_t> points = matching_points(scenario, values);
  if (points.size() == 1) return points.front();
  const std::string place = place_of(scenario, values), name = point_name(values);
  if (points.empty())
    throw InputError(fmt::format("{}: published: the sweep has no point with {}", place, name));
  throw InputError(fmt::format("{}: published: {} points have {}, such as {} and {}; give more values", place,
                               points.size(), name, point_name(scenario.points[points[0]].values),
                               point_name(scenario.points[points[1]].values)));
}

/// The values of the published column at a point, by draw.
std::vector<double> figures(const Published& published, const Simulations& all, std::size_t point) {
  if (over_draws(all, point, published.column).size() != all.rows.size()) {
    throw InputError(fmt::format("published: results have no number in column \"{}\"", published.column));
  }
  return predictive_values(all, point, published.column);
}

std::vector<double> ratios(std::vector<double> values, const std::vector<double>& below) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] /= below[i];
  return values;
}

/// The share of the values whose difference to those of the other point has the published sign. The
/// difference, unlike the ratio, is defined if a value is 0.
double share_of_trend(const std::string& relation, const std::vector<double>& values,
                      const std::vector<double>& below) {
  std::size_t holds = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    holds += relation == "less_than" ? values[i] < below[i] : values[i] > below[i];
  }
  return static_cast<double>(holds) / values.size();
}

/// The value of the column with ideal scaling, where throughput is proportional to the number of workers. It
/// is scaled from the other point of a ratio, or from the point of the series with the fewest workers.
std::optional<double> ideal(const Published& published, const Simulations& all, std::size_t point,
                            std::size_t over) {
  const Row& row = all.rows.front()[point];
  if (!published.over.empty()) {
    if (published.column != "samples_per_second") return std::nullopt;
    return *row.number("workers") / *all.rows.front()[over].number("workers");
  }
  if (!row.number("efficiency")) return std::nullopt;  // the point's series has no other point
  const double efficiency = *row.number("efficiency");
  const auto value = quantile(over_draws(all, point, published.column), 0.5);
  if (published.column == "step_seconds" || published.column == "epoch_seconds" ||
      published.column == "training_hours" || published.column == "sweep_minutes") {
    return value * efficiency;
  }
  if (published.column == "samples_per_second" || published.column == "speedup" ||
      published.column == "efficiency") {
    return value / efficiency;
  }
  return std::nullopt;
}

PublishedKind kind_of(const std::string& word) {
  if (word == "predicted") return PublishedKind::predicted;
  if (word == "fitted") return PublishedKind::fitted;
  return word == "bound" ? PublishedKind::bound : PublishedKind::trend;
}

/// True if the figure was given as a measurement of its point.
bool is_measured(const Scenario& scenario, const Published& published) {
  return published.kind == "predicted" && published.over.empty() &&
         std::ranges::any_of(scenario.measurements, [&](const Measurement& one) {
           return one.column == published.column &&
                  matching_point(scenario, one.point) == matching_point(scenario, published.point);
         });
}

PublishedRow row_of(const Scenario& scenario, const Published& published, const Simulations& all) {
  const std::size_t point = find_point(scenario, published.point);
  const std::size_t over = published.over.empty() ? point : find_point(scenario, published.over);
  PublishedFigure figure;
  figure.scenario = scenario.name;
  figure.point =
      scenario.points[point].name + (published.over.empty() ? "" : " / " + scenario.points[over].name);
  figure.column = published.column;
  figure.kind = is_measured(scenario, published) ? PublishedKind::fitted : kind_of(published.kind);
  figure.tolerance = published.tolerance;
  figure.source = published.source;
  figure.counted = published.counted;
  figure.tuned = published.tuned;
  Forecast forecast;
  auto values = figures(published, all, point);
  const auto below = published.over.empty() ? std::vector<double>{} : figures(published, all, over);
  if (figure.kind == PublishedKind::trend) {
    figure.ordering =
        published.relation == "less_than" ? "less than the other point" : "more than the other point";
    forecast.share = share_of_trend(published.relation, values, below);
    if (std::any_of(below.begin(), below.end(), [](double x) { return x <= 0; }))
      return compared(figure, forecast);  // there is no ratio to 0
  } else {
    figure.value = published.value;
    forecast.ideal = ideal(published, all, point, over);
  }
  if (figure.kind == PublishedKind::bound) {
    figure.relation = published.relation == "at_most" ? Relation::at_most : Relation::at_least;
  }
  auto central = central_values(all, point, published.column);
  if (!below.empty()) {
    values = ratios(std::move(values), below);
    central = ratios(std::move(central), central_values(all, over, published.column));
  }
  const auto interval = forecast_interval(values);
  forecast.median = median_of(central);
  if (values.size() > 1) {
    forecast.low = interval.low;
    forecast.high = interval.high;
  }
  return compared(figure, forecast);
}

/// A column that a published or measured figure of a point needs.
struct AskedColumn {
  const char* key;
  const std::vector<Assignment>* figure;  ///< the figure's point
  std::string column;
};

void check_column(const Scenario& scenario, const AskedColumn& asked, const Row& row) {
  std::vector<std::string> columns = number_columns(row);
  columns.insert(columns.end(), {"speedup", "efficiency"});  // added when all points are simulated
  if (std::find(columns.begin(), columns.end(), asked.column) != columns.end()) return;
  throw InputError(fmt::format("{}: {}: results of this point have no number in a column \"{}\"{}",
                               place_of(scenario, *asked.figure), asked.key, printable(asked.column),
                               word_advice(asked.column, columns)));
}

}  // namespace

std::vector<std::string> leave_out_lost_figures(Scenario& scenario) {
  std::vector<std::string> lines;
  if (!scenario.sweep_replaced) return lines;
  std::erase_if(scenario.published, [&](const Published& one) {
    const bool point = matching_point(scenario, one.point).has_value();
    if (point && (one.over.empty() || matching_point(scenario, one.over))) return false;
    lines.push_back(fmt::format("not compared: {} at {}: --set has removed this point from the sweep",
                                one.column, point_name(point ? one.over : one.point)));
    return true;
  });
  return lines;
}

namespace {

bool has_results(const Scenario& scenario, const std::vector<std::size_t>& points,
                 const Published& published) {
  const auto has = [&](const std::vector<Assignment>& values) {
    return std::ranges::binary_search(points, find_point(scenario, values));
  };
  return has(published.point) && (published.over.empty() || has(published.over));
}

/// How far a forecast is from the published value, as the logarithm of their ratio; 0 where there is none.
double distance(const PublishedRow& row) {
  if (row.figure.kind != PublishedKind::predicted || !row.figure.value || !row.forecast.median) return 0;
  const double ratio = *row.forecast.median / *row.figure.value;
  return ratio > 0 ? std::abs(std::log(ratio)) : 0;
}

}  // namespace

ReportedFigure reported_figure(const Scenario& scenario, const std::vector<std::size_t>& points,
                               const std::vector<PublishedRow>& published) {
  ReportedFigure farthest{points.back()};
  double most = -1;
  auto row = published.begin();
  for (const Published& one : scenario.published) {
    if (row == published.end()) break;
    if (!has_results(scenario, points, one)) continue;
    const double far = distance(*row++);
    if (one.kind != "predicted" || far <= most) continue;
    most = far;
    farthest = {find_point(scenario, one.point), one.column};
    if (!one.over.empty()) farthest.over = find_point(scenario, one.over);
  }
  return farthest;
}

std::vector<PublishedRow> compared_with_published(const Scenario& scenario,
                                                  const std::vector<std::size_t>& points,
                                                  const Simulations& all) {
  std::vector<PublishedRow> rows;
  for (const Published& published : scenario.published) {
    if (has_results(scenario, points, published)) rows.push_back(row_of(scenario, published, all));
  }
  return rows;
}

std::function<void(std::size_t, const Row&)> column_check(const Scenario& scenario) {
  std::multimap<std::size_t, AskedColumn> asked;
  for (const Published& one : scenario.published) {
    const AskedColumn column{"published", &one.point, one.column};
    asked.emplace(find_point(scenario, one.point), column);
    if (!one.over.empty()) asked.emplace(find_point(scenario, one.over), column);
  }
  for (const Measurement& one : scenario.measurements) {
    if (const auto point = matching_point(scenario, one.point))
      asked.emplace(*point, AskedColumn{"measured", &one.point, one.column});
  }
  return [&scenario, asked = std::move(asked)](std::size_t point, const Row& row) {
    const auto [first, last] = asked.equal_range(point);
    for (auto one = first; one != last; ++one) check_column(scenario, one->second, row);
  };
}

}  // namespace stepcast
