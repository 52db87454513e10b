#include "validate/compare/point_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "report/results/published.hpp"
#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

struct Samples {
  std::vector<double> values, compute, waiting;
  int disturbed = 0;
};

using PointKey = std::vector<std::string>;

/// The cells as texts, in which 8 and 8.0 are equal.
PointKey key_of(const Row& row, const std::vector<std::string>& by) {
  PointKey key;
  for (const std::string& column : by) key.push_back(row.text(column));
  return key;
}

/// The point's name alone if it is joined by `point`; else "workers=8, strategy=ring".
std::string name_of(const PointKey& key, const std::vector<std::string>& by) {
  if (by.size() == 1 && by[0] == "point") return key[0];
  std::string name;
  for (std::size_t i = 0; i < by.size(); ++i)
    name += fmt::format("{}{}={}", i > 0 ? ", " : "", by[i], key[i]);
  return name;
}

std::map<PointKey, Samples> samples_of(const Results& results, const JoinKeys& keys) {
  std::map<PointKey, Samples> points;
  for (const Row& row : results.rows) {
    Samples& samples = points[key_of(row, keys.by)];
    const std::string kept = row.text("kept");
    const auto value = row.number(keys.column);
    if (!kept.empty() && kept != "true") {
      ++samples.disturbed;
    } else if (value && *value > 0) {
      samples.values.push_back(*value);
      samples.compute.push_back(row.number("compute_seconds").value_or(0));
      samples.waiting.push_back(row.number("waiting_seconds").value_or(0));
    }
  }
  return points;
}

std::string line(const std::string& name, const std::vector<double>& errors) {
  const ErrorSummary summary = summarized(errors);
  return fmt::format(
      "{}: {} point{}: |error| mean {:.2f} %, median {:.2f} %, 90th percentile {:.2f} %, maximum {:.2f} %",
      name, summary.count, summary.count == 1 ? "" : "s", 100 * summary.mean, 100 * summary.median,
      100 * summary.p90, 100 * summary.maximum);
}

}  // namespace

std::vector<PointComparison> compare_points(const Results& predicted, const Results& samples,
                                            const JoinKeys& keys) {
  auto measured = samples_of(samples, keys);
  std::vector<PointComparison> comparisons;
  for (const Row& row : predicted.rows) {
    const auto found = measured.find(key_of(row, keys.by));
    const auto forecast = row.number(keys.column);
    if (found == measured.end() || found->second.values.empty() || !forecast || *forecast <= 0) continue;
    const Estimate interval = estimate_of(keys.statistic, found->second.values, {.seed = 1});
    PointComparison one;
    one.point = name_of(found->first, keys.by);
    one.strategy = row.text("strategy");
    one.ranks = static_cast<int>(row.number("workers").value_or(0));
    one.repeats = found->second.values.size();
    one.disturbed = found->second.disturbed;
    one.predicted = *forecast;
    one.predicted_compute = row.number("compute_seconds").value_or(0);
    one.predicted_waiting = row.number("waiting_seconds").value_or(0);
    one.measured = interval.value;
    one.low = interval.low;
    one.high = interval.high;
    one.measured_compute = value_of(keys.statistic, found->second.compute);
    one.measured_waiting = value_of(keys.statistic, found->second.waiting);
    comparisons.push_back(one);
    measured.erase(found);
  }
  return comparisons;
}

Results results_of(const std::vector<PointComparison>& comparisons, const std::string& scenario,
                   const std::string& cluster) {
  Results results{scenario, {}};
  for (const PointComparison& one : comparisons) {
    Row row;
    row.set("point", one.point);
    row.set("strategy", one.strategy);
    row.set("ranks", std::int64_t{one.ranks});
    row.set("cluster", cluster);
    row.set("repeats", std::int64_t{one.repeats});
    row.set("predicted_seconds", one.predicted);
    row.set("measured_seconds", one.measured);
    row.set("measured_low", one.low);
    row.set("measured_high", one.high);
    row.set("predicted_compute_seconds", one.predicted_compute);
    row.set("measured_compute_seconds", one.measured_compute);
    row.set("predicted_waiting_seconds", one.predicted_waiting);
    row.set("measured_waiting_seconds", one.measured_waiting);
    row.set("disturbed", std::int64_t{one.disturbed});
    results.rows.push_back(std::move(row));
  }
  return results;
}

std::string interval_text(const PointComparison& comparison) {
  return fmt::format("{:+.1f} {:+.1f}", 100 * (comparison.low / comparison.measured - 1),
                     100 * (comparison.high / comparison.measured - 1));
}

SpeedOrder order_of(const std::vector<PointComparison>& comparisons) {
  SpeedOrder order;
  for (std::size_t a = 0; a < comparisons.size(); ++a) {
    for (std::size_t b = a + 1; b < comparisons.size(); ++b) {
      const PointComparison &one = comparisons[a], &other = comparisons[b];
      if (one.low <= other.high && other.low <= one.high) continue;
      ++order.pairs;
      if ((one.predicted < other.predicted) == (one.measured < other.measured)) ++order.right;
    }
  }
  return order;
}

std::vector<std::string> summary_lines(const std::vector<PointComparison>& comparisons) {
  std::map<std::string, std::vector<double>> errors;
  std::vector<double> all;
  for (const PointComparison& one : comparisons) {
    errors[one.strategy].push_back(one.error());
    all.push_back(one.error());
  }
  std::vector<std::string> lines;
  for (const auto& [strategy, own] : errors)
    if (!strategy.empty()) lines.push_back(line(strategy, own));
  if (lines.size() != 1) lines.push_back(line("all", all));
  const SpeedOrder order = order_of(comparisons);
  if (order.pairs > 0) {
    lines.push_back(
        fmt::format("order by speed: right in {} of {} pairs whose intervals do not overlap ({:.1f} %)",
                    order.right, order.pairs, 100.0 * order.right / order.pairs));
  }
  return lines;
}

Results times_to_loss(const std::string& scenario, double target_loss,
                      const std::vector<LearnedRun>& predicted, const std::vector<LearnedRun>& measured) {
  Results results{scenario, {}};
  for (const LearnedRun& real : measured) {
    const auto same = [&](const LearnedRun& one) { return one.point == real.point && one.seed == real.seed; };
    const auto forecast = std::ranges::find_if(predicted, same);
    if (forecast == predicted.end()) continue;
    Row& row = results.rows.emplace_back();
    row.set("point", real.point);
    row.set("seed", real.seed);
    row.set("target_loss", target_loss);
    for (const auto& [name, run] : {std::pair("predicted", &*forecast), std::pair("measured", &real)}) {
      const std::string prefix = name;
      if (run->seconds_to_target) row.set(prefix + "_seconds", *run->seconds_to_target);
      if (run->samples_to_target) row.set(prefix + "_samples", *run->samples_to_target);
      row.set(prefix + "_loss", run->loss);
    }
  }
  return results;
}

Table times_to_loss_table(double target_loss, const std::vector<LearnedPoint>& predicted,
                          const std::vector<LearnedPoint>& measured) {
  Table table;
  const std::string target = fmt::format("to loss {:.3g}", target_loss);
  table.columns = {{"point", "", Align::left, 60},
                   {"time " + target, "forecast"},
                   {"", "measured"},
                   {"error", "%"},
                   {"samples", "forecast"},
                   {"", "measured"}};
  const auto time = [](std::optional<double> seconds) {
    return seconds ? human(Seconds{*seconds}) : "not reached";
  };
  const auto count = [](std::optional<double> samples) {
    return samples ? fmt::format("{:.0f}", *samples) : "not reached";
  };
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const LearnedPoint &forecast = predicted[i], &real = measured[i];
    const bool both = forecast.seconds_to_target && real.seconds_to_target;
    const double ratio = both ? *forecast.seconds_to_target / *real.seconds_to_target : 1;
    table.rows.push_back({real.point, time(forecast.seconds_to_target), time(real.seconds_to_target),
                          both ? fmt::format("{:+.1f}", 100 * (ratio - 1)) : "",
                          count(forecast.samples_to_target), count(real.samples_to_target)});
  }
  return table;
}

}  // namespace stepcast
