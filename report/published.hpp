#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/results.hpp"
#include "report/table.hpp"

namespace stepcast {

/// How a published figure may be used. Only `predicted` ones enter statistics of error.
enum class PublishedKind {
  predicted,  ///< nothing was fitted on it
  fitted,     ///< fed in by `calibrate:`
  bound,      ///< an upper or lower limit
  trend,      ///< an ordering or a sign: true or not
};

/// How the forecast is held against the published value.
enum class Relation { equal, at_most, at_least };

std::string to_string(PublishedKind kind);

/// One published figure as a scenario states it.
struct PublishedFigure {
  std::string scenario = {};
  std::string point = {};
  std::string column = {};
  PublishedKind kind = PublishedKind::predicted;
  Relation relation = Relation::equal;   ///< at_most and at_least for bounds
  std::optional<double> value = {};      ///< nothing for a trend
  std::string ordering = {};             ///< of a trend, in words: "rises with workers"
  std::optional<double> tolerance = {};  ///< a fraction; allowed |error| without an interval, and of a bound
  std::string source = {};
};

/// What the simulator says about the same column. A trend is met or not; its numbers are the ratio of the two
/// points, and missing where the other one has nothing.
struct Forecast {
  std::optional<double> median = {};
  std::optional<double> low = {};    ///< 5 %
  std::optional<double> high = {};   ///< 95 %
  std::optional<double> ideal = {};  ///< what ideal scaling from the smallest point would have given
  std::optional<bool> holds = {};    ///< trend only
};

/// One row of published.csv.
struct PublishedRow {
  PublishedFigure figure = {};
  Forecast forecast = {};
  std::optional<bool> inside = {};                 ///< see `compared`
  std::optional<double> error = {};                ///< median / published - 1
  std::optional<double> ideal_scaling_error = {};  ///< ideal / published - 1
};

/// Holds a forecast against a published figure. `inside` is, for predicted figures, whether the value lies in
/// the interval [low, high] or, without one, |error| <= tolerance; for fitted ones, whether |error| <=
/// tolerance (0.1 % without one); for a bound, whether the median keeps it, give or take the tolerance; for a
/// trend, whether it holds. Nothing where that cannot be said.
PublishedRow compared(const PublishedFigure& figure, const Forecast& forecast);

/// published.csv: scenario, point, column, kind, relation (`=`, `<=`, `>=` or a trend in words), predicted,
/// low, high, published, inside, error, tolerance, ideal_scaling_error, source. Write it with `to_csv`.
Results to_results(const std::string& scenario, const std::vector<PublishedRow>& rows);

/// For the terminal: errors in per cent, interval in brackets, inside as yes or no.
Table published_table(const std::vector<PublishedRow>& rows);

}  // namespace stepcast
