#include "report/results/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

constexpr int kWidestPoint = 64;           // [characters]
constexpr double kFails = 0.1;             // share of the draws up to which a trend does not hold: 1 - kHolds
constexpr double kFittedTolerance = 1e-3;  // default tolerance of fitted figures; calibration stops at 1e-5

std::optional<double> relative_error(std::optional<double> value, std::optional<double> reference) {
  if (!value || !reference || *reference == 0) return std::nullopt;
  return *value / *reference - 1;
}

std::optional<bool> is_inside(const PublishedFigure& figure, const Forecast& forecast,
                              std::optional<double> error) {
  if (figure.kind == PublishedKind::trend) {
    if (!forecast.share || (*forecast.share > kFails && *forecast.share < kHolds)) return std::nullopt;
    return *forecast.share >= kHolds;
  }
  if (!figure.value || !forecast.median) return std::nullopt;
  const double slack = std::abs(*figure.value) * figure.tolerance.value_or(0);
  if (figure.relation == Relation::at_most) return *forecast.median <= *figure.value + slack;
  if (figure.relation == Relation::at_least) return *forecast.median >= *figure.value - slack;
  if (figure.kind == PublishedKind::fitted && error)
    return std::abs(*error) <= figure.tolerance.value_or(kFittedTolerance);
  if (forecast.low && forecast.high) return *forecast.low <= *figure.value && *figure.value <= *forecast.high;
  if (error && figure.tolerance) return std::abs(*error) <= *figure.tolerance;
  return std::nullopt;
}

std::string relation_of(const PublishedFigure& figure) {
  if (figure.kind == PublishedKind::trend) return figure.ordering;
  if (figure.relation == Relation::at_most) return "<=";
  return figure.relation == Relation::at_least ? ">=" : "=";
}

Cell cell_of(std::optional<double> value) {
  return value ? Cell(*value) : Cell();
}
Cell cell_of(std::optional<bool> value) {
  return value ? Cell(*value) : Cell();
}

std::string four_digits(std::optional<double> value) {
  return value ? fmt::format("{:.4g}", *value) : "";
}

std::string percent(std::optional<double> fraction) {
  return fraction ? fmt::format("{:+.1f}", *fraction * 100) : "";
}

/// "holds", "does not hold" or "open", with the share of the draws unless they all agree.
std::string trend_text(double share) {
  const char* word = share >= kHolds ? "holds" : share <= kFails ? "does not hold" : "open";
  return share == 0 || share == 1 ? word : fmt::format("{} ({:.0f} % of draws)", word, 100 * share);
}

std::string forecast_text(const Forecast& forecast) {
  if (forecast.share) {
    if (!forecast.median) return trend_text(*forecast.share);
    Forecast ratio = forecast;
    ratio.share = {};
    return trend_text(*forecast.share) + ": x " + forecast_text(ratio);
  }
  if (!forecast.low || !forecast.high) return four_digits(forecast.median);
  return fmt::format("{} [{} .. {}]", four_digits(forecast.median), four_digits(forecast.low),
                     four_digits(forecast.high));
}

/// The name of a point without the paths of its keys: "split=4, workers=16" for "strategy.split=4,
/// workers=16".
std::string without_paths(const std::string& point) {
  constexpr std::string_view kKeyLetters = "abcdefghijklmnopqrstuvwxyz_0123456789[].";
  std::string text;
  for (std::size_t begin = 0; begin < point.size();) {
    const std::size_t end = std::min(point.find_first_not_of(kKeyLetters, begin), point.size());
    const std::size_t dot = point.rfind('.', end);
    const bool is_path = end < point.size() && point[end] == '=' && dot != point.npos && dot >= begin;
    if (is_path) begin = dot + 1;
    const std::size_t next = std::min(point.find_first_of(" =", end), point.size() - 1) + 1;
    text += point.substr(begin, next - begin);
    begin = next;
  }
  return text;
}

std::string published_text(const PublishedFigure& figure) {
  auto relation = relation_of(figure);
  if (!figure.value) return relation;
  return relation == "=" ? four_digits(figure.value) : relation + " " + four_digits(figure.value);
}

}  // namespace

std::optional<double> margin(const PublishedRow& row) {
  const auto median = row.forecast.median, value = row.figure.value;
  if (row.figure.relation == Relation::equal || !median || !value || *median <= 0 || *value <= 0)
    return std::nullopt;
  return row.figure.relation == Relation::at_most ? *value / *median : *median / *value;
}

namespace {

/// "yes", "no" or "open"; empty where there is nothing to decide.
std::string decision(const PublishedRow& row) {
  if (row.inside) return *row.inside ? "yes" : "no";
  return row.forecast.share ? "open" : "";
}

Cell inside_cell(const PublishedRow& row) {
  return decision(row) == "open" ? Cell(std::string("open")) : cell_of(row.inside);
}

/// The decision, and for a bound by what factor it is kept: "yes, x 1.5".
std::string decision_text(const PublishedRow& row) {
  const auto factor = margin(row);
  return decision(row) + (factor ? fmt::format(", x {:.3g}", *factor) : "");
}

}  // namespace

std::string to_string(PublishedKind kind) {
  switch (kind) {
    case PublishedKind::predicted:
      return "predicted";
    case PublishedKind::fitted:
      return "fitted";
    case PublishedKind::bound:
      return "bound";
    case PublishedKind::trend:
      return "trend";
  }
  return "";
}

PublishedRow compared(const PublishedFigure& figure, const Forecast& forecast) {
  const auto error = relative_error(forecast.median, figure.value);
  return {figure, forecast, is_inside(figure, forecast, error), error,
          relative_error(forecast.ideal, figure.value)};
}

Results to_results(const std::string& scenario, const std::vector<PublishedRow>& rows) {
  Results results{scenario, {}};
  for (const PublishedRow& row : rows) {
    Row out;
    out.set("scenario", row.figure.scenario);
    out.set("point", row.figure.point);
    out.set("column", row.figure.column);
    out.set("kind", to_string(row.figure.kind));
    out.set("relation", relation_of(row.figure));
    out.set("predicted", cell_of(row.forecast.median));
    out.set("low", cell_of(row.forecast.low));
    out.set("high", cell_of(row.forecast.high));
    out.set("published", cell_of(row.figure.value));
    out.set("inside", inside_cell(row));
    out.set("share_of_draws", cell_of(row.forecast.share));
    out.set("margin", cell_of(margin(row)));
    out.set("error", cell_of(row.error));
    out.set("tolerance", cell_of(row.figure.tolerance));
    out.set("ideal_scaling_error", cell_of(row.ideal_scaling_error));
    out.set("counted", row.figure.counted);
    out.set("tuned", row.figure.tuned.empty() ? Cell() : Cell(row.figure.tuned));
    out.set("source", row.figure.source);
    results.rows.push_back(std::move(out));
  }
  return results;
}

Table published_table(const std::vector<PublishedRow>& rows) {
  Table table;
  table.columns = {{"point", "", Align::left, kWidestPoint},
                   {"column", "", Align::left, 32},
                   {"kind", "", Align::left},
                   {"forecast"},
                   {"published"},
                   {"inside", "", Align::left},
                   {"error", "%"},
                   {"error of ideal scaling", "%"}};
  for (const PublishedRow& row : rows) {
    table.rows.push_back({without_paths(row.figure.point), row.figure.column, to_string(row.figure.kind),
                          forecast_text(row.forecast), published_text(row.figure), decision_text(row),
                          percent(row.error), percent(row.ideal_scaling_error)});
  }
  return table;
}

namespace {

using ErrorsByScenario = std::map<std::string, std::vector<double>>;

/// Statistics of the scenarios' median |error|.
ErrorSummary summarized_medians(const ErrorsByScenario& errors) {
  std::vector<double> medians;
  for (const auto& [scenario, of_rows] : errors) medians.push_back(summarized(of_rows).median);
  return summarized(medians);
}

}  // namespace

ErrorSummary summarized(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  return {sizes.size(), mean(sizes), median_of(sizes), quantile(sizes, 0.9), quantile(sizes, 1)};
}

PublishedSummary summarized(const std::vector<PublishedRow>& rows) {
  PublishedSummary summary;
  std::vector<double> errors, ideal, tuned;
  ErrorsByScenario by_scenario, ideal_by_scenario;
  for (const PublishedRow& row : rows) {
    if (row.figure.kind != PublishedKind::predicted || !row.figure.counted) continue;
    const bool interval = row.forecast.low && row.forecast.high && row.inside;
    if (!row.figure.tuned.empty()) {
      if (row.error) tuned.push_back(*row.error);
      summary.tuned_inside += interval && *row.inside ? 1 : 0;
      continue;
    }
    if (row.error) errors.push_back(*row.error);
    if (row.error) by_scenario[row.figure.scenario].push_back(*row.error);
    if (row.ideal_scaling_error) ideal.push_back(*row.ideal_scaling_error);
    if (row.ideal_scaling_error) ideal_by_scenario[row.figure.scenario].push_back(*row.ideal_scaling_error);
    summary.with_interval += interval ? 1 : 0;
    summary.inside_interval += interval && *row.inside ? 1 : 0;
  }
  summary.error = summarized(errors);
  summary.tuned = summarized(tuned);
  summary.ideal_scaling = summarized(ideal);
  summary.by_experiment = summarized_medians(by_scenario);
  summary.ideal_by_experiment = summarized_medians(ideal_by_scenario);
  return summary;
}

namespace {

/// Text about the rows that were changed after a look; empty if there is none.
std::string tuned_text(const PublishedSummary& summary) {
  if (summary.tuned.count == 0) return "";
  return fmt::format(
      "\nnot counted: {} figure{} of forecasts that were changed after a look at the first "
      "result: |error| median {:.1f} %; {} inside the interval",
      summary.tuned.count, summary.tuned.count == 1 ? "" : "s", 100 * summary.tuned.median,
      summary.tuned_inside);
}

}  // namespace

std::string to_string(const PublishedSummary& summary) {
  if (summary.error.count == 0) return "no blind predicted figure to compare with" + tuned_text(summary);
  auto text = fmt::format(
      "{} predicted figure{}: |error| mean {:.1f} %, median {:.1f} %, 90th percentile {:.1f} %, maximum "
      "{:.1f} %",
      summary.error.count, summary.error.count == 1 ? "" : "s", 100 * summary.error.mean,
      100 * summary.error.median, 100 * summary.error.p90, 100 * summary.error.maximum);
  if (summary.with_interval > 0) {
    text += fmt::format("; {} of {} inside the interval", summary.inside_interval, summary.with_interval);
  }
  if (summary.ideal_scaling.count > 0) {
    text += fmt::format("; ideal scaling: median {:.1f} %", 100 * summary.ideal_scaling.median);
  }
  const ErrorSummary &experiments = summary.by_experiment, &ideal = summary.ideal_by_experiment;
  if (experiments.count > 1) {
    text += fmt::format(
        "\neach experiment counted once, by the median |error| of its rows: median over {} experiments "
        "{:.1f} %",
        experiments.count, 100 * experiments.median);
    if (ideal.count > 0) {
      text += fmt::format("; ideal scaling, which predicts {} of them: {:.1f} %", ideal.count,
                          100 * ideal.median);
    }
  }
  return text + tuned_text(summary);
}

}  // namespace stepcast
