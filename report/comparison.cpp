#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/statistics.hpp"

namespace stepcast {
namespace {

using ErrorsByScenario = std::map<std::string, std::vector<double>>;

/// Of the median |error| of each scenario.
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
  std::vector<double> errors;
  std::vector<double> ideal;
  ErrorsByScenario by_scenario, ideal_by_scenario;
  for (const PublishedRow& row : rows) {
    if (row.figure.kind != PublishedKind::predicted) continue;
    if (row.error) errors.push_back(*row.error);
    if (row.error) by_scenario[row.figure.scenario].push_back(*row.error);
    if (row.ideal_scaling_error) ideal.push_back(*row.ideal_scaling_error);
    if (row.ideal_scaling_error) ideal_by_scenario[row.figure.scenario].push_back(*row.ideal_scaling_error);
    const bool interval = row.forecast.low && row.forecast.high && row.inside;
    summary.with_interval += interval ? 1 : 0;
    summary.inside_interval += interval && *row.inside ? 1 : 0;
  }
  summary.error = summarized(errors);
  summary.ideal_scaling = summarized(ideal);
  summary.by_experiment = summarized_medians(by_scenario);
  summary.ideal_by_experiment = summarized_medians(ideal_by_scenario);
  return summary;
}

std::string to_string(const PublishedSummary& summary) {
  if (summary.error.count == 0) return "no predicted figure to compare with";
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
    text +=
        fmt::format("\none number an experiment (the median of its rows): |error| median over {} {:.1f} %",
                    experiments.count, 100 * experiments.median);
    if (ideal.count > 0) {
      text += fmt::format("; ideal scaling, over the {} where it says anything: {:.1f} %", ideal.count,
                          100 * ideal.median);
    }
  }
  return text;
}

}  // namespace stepcast
