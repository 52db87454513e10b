#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {

/// The permitted use of a published figure. Only figures of kind `predicted` enter the error statistics.
enum class PublishedKind {
  predicted,  ///< nothing was fitted to it
  fitted,     ///< an input of `calibrate:`
  bound,      ///< an upper or lower limit
  trend,      ///< an ordering of two points or a sign, which holds or does not
};

/// The relation that is expected between the forecast and the published value.
enum class Relation { equal, at_most, at_least };

std::string to_string(PublishedKind kind);

/// One published figure as a scenario states it.
struct PublishedFigure {
  std::string scenario = {};
  std::string point = {};
  std::string column = {};
  PublishedKind kind = PublishedKind::predicted;
  Relation relation = Relation::equal;   ///< at_most and at_least for bounds
  std::optional<double> value = {};      ///< missing for a trend
  std::string ordering = {};             ///< text of a trend, such as "rises with workers"
  std::optional<double> tolerance = {};  ///< allowed |error| of a bound or without an interval, as a fraction
  std::string source = {};
  bool counted = true;     ///< false: another row states the same figure, in another column
  std::string tuned = {};  ///< what was changed after a look at the first result; empty: a blind forecast
};

/// The simulator's forecast of the same column. For a trend the numbers are the ratio of the two points, and
/// missing if the second point is 0.
struct Forecast {
  std::optional<double> median = {};
  std::optional<double> low = {};    ///< 5 % quantile
  std::optional<double> high = {};   ///< 95 % quantile
  std::optional<double> ideal = {};  ///< value of ideal scaling from the smallest point
  std::optional<double> share = {};  ///< trends only: share of the draws in which the trend holds
};

/// Share of the draws from which on a trend holds. At 1 - kHolds and less it does not hold; it is open
/// between.
constexpr double kHolds = 0.9;

/// One row of published.csv.
struct PublishedRow {
  PublishedFigure figure = {};
  Forecast forecast = {};
  std::optional<bool> inside = {};                 ///< see `compared`
  std::optional<double> error = {};                ///< median / published - 1
  std::optional<double> ideal_scaling_error = {};  ///< ideal / published - 1
};

/// Compares a forecast with a published figure. `inside` is true
/// - for a predicted figure if the value lies in the interval [low, high] or, without an interval, |error| <=
/// tolerance;
/// - for a fitted figure if |error| <= tolerance (0.1 % without a tolerance);
/// - for a bound if the median satisfies it to within the tolerance;
/// - for a trend if it holds in at least kHolds of the draws; false if it fails in as many, else missing:
/// open. It is missing if the data for the decision are missing.
PublishedRow compared(const PublishedFigure& figure, const Forecast& forecast);

/// The factor by which the median keeps a bound, below 1 if it breaks it: 2 for 4 >= 2 and for 2 <= 4.
/// Missing for other kinds, and if a value is not above 0.
std::optional<double> margin(const PublishedRow& row);

/// published.csv: scenario, point, column, kind, relation (`=`, `<=`, `>=` or a trend in words), predicted,
/// low, high, published, inside (`open` for an open trend), share_of_draws, margin, error, tolerance,
/// ideal_scaling_error, counted, tuned, source. Write it with `to_csv`.
Results to_results(const std::string& scenario, const std::vector<PublishedRow>& rows);

/// The table for the terminal: errors in per cent, intervals in brackets, `inside` as yes or no.
Table published_table(const std::vector<PublishedRow>& rows);

/// Statistics of |error|, each a fraction.
struct ErrorSummary {
  std::size_t count = 0;
  double mean = 0;
  double median = 0;
  double p90 = 0;  ///< 90th percentile
  double maximum = 0;
};

/// Statistics of the magnitudes of signed errors; all zero without errors.
ErrorSummary summarized(const std::vector<double>& errors);

/// Statistics of the counted, blind rows of kind `predicted`; other rows were fitted or have no error.
struct PublishedSummary {
  ErrorSummary error;                ///< by row
  ErrorSummary ideal_scaling;        ///< errors of ideal scaling, by row for which it makes a prediction
  ErrorSummary by_experiment;        ///< by scenario: the median |error| of its rows
  ErrorSummary ideal_by_experiment;  ///< by scenario: the median |error| of ideal scaling
  std::size_t with_interval = 0;     ///< number of rows with a forecast interval
  std::size_t inside_interval = 0;   ///< number of rows whose published value lies inside their interval
  ErrorSummary tuned;                ///< of the counted rows that are not blind
  std::size_t tuned_inside = 0;      ///< of them, number of rows inside their interval
};

PublishedSummary summarized(const std::vector<PublishedRow>& rows);

/// Text for the terminal, such as "4 predicted figures: |error| mean 2.4 %, ...", or that there is no
/// predicted figure.
std::string to_string(const PublishedSummary& summary);

}  // namespace stepcast
