#include "forecast/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/text.hpp"
#include "forecast/discrepancy.hpp"
#include "report/statistics/statistics.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {
namespace {

/// The columns that get an interval.
const std::vector<std::string> kIntervals{"step_seconds",
                                          "samples_per_second",
                                          "tokens_per_second",
                                          "tokens_per_second_per_device",
                                          "mfu",
                                          "speedup",
                                          "efficiency",
                                          "exposed_communication_seconds",
                                          "communication_seconds",
                                          "epoch_seconds",
                                          "training_hours",
                                          "training_hours_with_faults",
                                          "useful_share",
                                          "makespan_hours",
                                          "device_utilization"};

/// The name of the discrepancy term among the assumptions.
constexpr const char* kDiscrepancyName = "discrepancy of the model";

double variance(const std::vector<double>& values) {
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum / values.size();
}

/// A scaling series: points that differ in the number of workers only.
struct Series {
  std::size_t base = 0;    ///< point with the fewest workers
  std::size_t points = 0;  ///< number of points
};

std::string value_at(const Point& point, const std::string& key) {
  for (const Assignment& one : point.values) {
    if (one.path == key) return point_name({one});
  }
  return "";
}

/// The series of each point, named by the point's values of the swept keys that vary at an equal number of
/// workers. Keys that only follow the number of workers, such as the machines of a replica, separate no
/// series; different networks always do.
std::map<std::size_t, std::string> series_names(const Scenario& scenario,
                                                const std::vector<std::size_t>& points,
                                                const std::vector<Row>& rows) {
  std::map<std::size_t, std::string> names;
  for (const std::string& key : scenario.sweep_keys) {
    if (key == "workers") continue;
    std::map<double, std::set<std::string>> values;
    for (const std::size_t point : points)
      values[*rows[point].number("workers")].insert(value_at(scenario.points[point], key));
    const bool varies = key == "model" || key.starts_with("model.") ||
                        std::ranges::any_of(values, [](const auto& one) { return one.second.size() > 1; });
    for (const std::size_t point : points) {
      std::string& name = names[point];
      if (varies) name += value_at(scenario.points[point], key) + "\n";
    }
  }
  return names;
}

std::map<std::size_t, Series> series_of(const Scenario& scenario, const std::vector<std::size_t>& points,
                                        const std::vector<Row>& rows) {
  auto names = series_names(scenario, points, rows);
  std::map<std::string, Series> by_name;
  for (const std::size_t point : points) {
    Series& series = by_name.try_emplace(names[point], Series{point, 0}).first->second;
    ++series.points;
    if (rows[point].number("workers") < rows[series.base].number("workers")) series.base = point;
  }
  std::map<std::size_t, Series> all;
  for (const std::size_t point : points) all[point] = by_name[names[point]];
  return all;
}

/// True if there are several values of the column: by draws of the assumptions, or by the discrepancy term.
bool is_uncertain(const Simulations& all, std::size_t point, const std::string& column) {
  return all.rows.size() > 1 || has_discrepancy(all, point, column);
}

/// Shares of a campaign's devices, which sum to 1.
bool is_campaign_share(const std::string& column) {
  return column == "device_utilization" || (column.starts_with("idle_") && column.ends_with("_share"));
}

/// The forecast of a column with fractional numbers, otherwise the cell of the first draw. Shares are means
/// over the draws, because means sum to 1 as every draw does and medians do not.
Cell middle(const Simulations& all, std::size_t point, const std::string& column, const Cell& first) {
  if (!std::holds_alternative<double>(first) || !is_uncertain(all, point, column)) return first;
  if (is_campaign_share(column)) return mean(over_draws(all, point, column));
  return median_of(central_values(all, point, column));
}

void add_intervals(Row& row, const Simulations& all, std::size_t point) {
  for (const std::string& column : kIntervals) {
    if (!row.number(column) || !is_uncertain(all, point, column)) continue;
    const auto interval = forecast_interval(predictive_values(all, point, column));
    row.set(column + "_low", interval.low);
    row.set(column + "_high", interval.high);
  }
  if (all.shifts.empty()) return;
  const double simulated = quantile(over_draws(all, point, "step_seconds"), 0.5);
  row.set("unmodelled_seconds", *row.number("step_seconds") - simulated);
}

}  // namespace

std::vector<std::size_t> simulated_points(const std::vector<std::size_t>& points, const Simulations& all) {
  std::vector<std::size_t> simulated = points;
  std::erase_if(simulated, [&](std::size_t point) { return all.failed.contains(point); });
  return simulated;
}

void add_scaling(const Scenario& scenario, const std::vector<std::size_t>& of_all, Simulations& all) {
  const std::vector<std::size_t> points = simulated_points(of_all, all);
  const auto series = series_of(scenario, points, all.rows.front());
  for (auto& rows : all.rows) {
    for (const std::size_t point : points) {
      const Series& own_series = series.at(point);
      all.scaling_base[point] = own_series.base;
      const Row& base = rows[own_series.base];
      Row& row = rows[point];
      if (own_series.points == 1 && *row.number("workers") > 1) continue;  // the series has no base
      const double workers = *row.number("workers") / *base.number("workers");
      const double speedup = *row.number("samples_per_second") / *base.number("samples_per_second");
      row.set("speedup", speedup * *base.number("workers"));
      row.set("efficiency", speedup / workers);
    }
  }
}

std::string bottleneck(const Row& reported) {
  const std::vector<std::pair<std::string, std::string>> parts{
      {"compute", "compute_seconds"},
      {"communication", "exposed_communication_seconds"},
      {"host", "host_seconds"},
      {"stragglers", "waiting_seconds"},
      {"data loading", "data_loading_seconds"}};
  const auto most = std::max_element(parts.begin(), parts.end(), [&](const auto& a, const auto& b) {
    return reported.number(a.second) < reported.number(b.second);
  });
  double all = reported.number("unmodelled_seconds").value_or(0);
  for (const auto& [name, column] : parts) all += reported.number(column).value_or(0);
  return fmt::format("{} ({:.0f} %)", most->first, 100 * *reported.number(most->second) / all);
}

namespace {

/// The row of a point with the columns that are known before it is simulated.
Row begun_row(const Point& point) {
  Row row;
  row.set("point", point.name);
  for (const Assignment& one : point.values) {
    if (one.path != "workers") row.set(one.path, point_name({one}).substr(one.path.size() + 1));
  }
  return row;
}

/// The row of a point without results.
Row row_without_results(const Point& point, const std::string& reason) {
  Row row = begun_row(point);
  const std::string workers = value_at(point, "workers");  // "workers=8"
  if (const auto count = parse_integer(workers.substr(workers.find('=') + 1))) row.set("workers", *count);
  row.set("failed", reason);
  return row;
}

}  // namespace

Results summarized_results(const Scenario& scenario, const std::vector<std::size_t>& points,
                           const Simulations& all) {
  Results results{scenario.name, {}};
  for (const std::size_t point : points) {
    if (const auto failed = all.failed.find(point); failed != all.failed.end()) {
      results.rows.push_back(row_without_results(scenario.points[point], failed->second));
      continue;
    }
    Row row = begun_row(scenario.points[point]);
    for (const auto& [column, cell] : all.rows.front()[point].cells)
      row.set(column, middle(all, point, column, cell));
    remove_rounding_of_compute(row);
    add_intervals(row, all, point);
    if (!all.without.empty()) add_noise_losses(row, all.rows.front()[point], all.without[point]);
    row.set("bottleneck", bottleneck(row));
    results.rows.push_back(std::move(row));
  }
  return results;
}

namespace {

/// Adds the share of the discrepancy term, which is independent of the draws: what the variance of all values
/// exceeds that of the draws by.
void add_share_of_discrepancy(std::vector<Sensitivity>& shares, const std::vector<double>& draws,
                              const std::vector<double>& values) {
  const double all = variance(values);
  if (all <= 0) return;
  const double of_draws = std::min(1.0, variance(draws) / all);
  for (Sensitivity& one : shares) one.share *= of_draws;
  shares.push_back({kDiscrepancyName, 1 - of_draws});
  std::ranges::stable_sort(shares, [](const auto& a, const auto& b) { return a.share > b.share; });
}

std::vector<double> divided(std::vector<double> values, const std::vector<double>& by) {
  for (std::size_t i = 0; i < values.size() && i < by.size(); ++i) values[i] /= by[i];
  return values;
}

bool differ_by_rounding_only(const std::vector<double>& values) {
  constexpr double kRounding = 1e-9;
  const auto [least, most] = std::ranges::minmax(values);
  return most - least <= kRounding * std::max(std::abs(least), std::abs(most));
}

std::vector<std::string> names_of(const std::vector<Assumption>& assumptions) {
  std::vector<std::string> names;
  for (const Assumption& one : assumptions) names.push_back(one.key);
  return names;
}

}  // namespace

std::vector<Sensitivity> variance_shares(const Scenario& scenario, const Simulations& all,
                                         const ReportedFigure& figure) {
  const std::size_t draws = all.rows.size();
  if (scenario.assumptions.empty() || draws < 3 * scenario.assumptions.size()) return {};
  const auto& [point, column, over] = figure;
  std::vector<double> values = over_draws(all, point, column);
  if (over) values = divided(std::move(values), over_draws(all, *over, column));
  if (values.size() < draws || differ_by_rounding_only(values)) return {};
  auto shares = sensitivities(names_of(scenario.assumptions), all.inputs, values);
  if (!has_discrepancy(all, point, column)) return shares;
  auto with_term = predictive_values(all, point, column);
  if (over) with_term = divided(std::move(with_term), predictive_values(all, *over, column));
  add_share_of_discrepancy(shares, values, with_term);
  return shares;
}

std::vector<std::string> unmoving_assumptions(const Scenario& scenario, const Simulations& all,
                                              const std::vector<std::size_t>& points) {
  constexpr std::size_t kMostPoints = 256;
  constexpr double kLeastShare = 1e-3;
  std::vector<std::string> keys;
  for (const Assumption& one : scenario.assumptions) {
    if (!one.by_default) keys.push_back(one.key);
  }
  if (all.rows.size() < 3 * scenario.assumptions.size()) return {};
  const std::size_t each = points.size() / kMostPoints + 1;
  for (std::size_t i = 0; i < points.size() && !keys.empty(); i += each) {
    const auto values = over_draws(all, points[points.size() - 1 - i], "step_seconds");
    if (values.size() < all.rows.size() || differ_by_rounding_only(values)) continue;
    for (const Sensitivity& one : sensitivities(names_of(scenario.assumptions), all.inputs, values)) {
      if (one.share >= kLeastShare) std::erase(keys, one.name);
    }
  }
  return keys;
}

}  // namespace stepcast
