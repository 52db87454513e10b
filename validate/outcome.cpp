#include "validate/outcome.hpp"

#include <fmt/format.h>

#include <map>

#include "report/comparison.hpp"
#include "report/statistics.hpp"

namespace stepcast {
namespace {

struct Samples {
  std::vector<double> seconds, compute;
  int disturbed = 0;
};

std::map<std::string, Samples> by_point(const Results& results) {
  std::map<std::string, Samples> points;
  for (const Row& row : results.rows) {
    Samples& samples = points[row.text("point")];
    if (row.text("kept") != "true") {
      ++samples.disturbed;
      continue;
    }
    samples.seconds.push_back(row.number("step_seconds").value_or(0));
    samples.compute.push_back(row.number("compute_seconds").value_or(0));
  }
  return points;
}

std::string line(const std::string& name, const std::vector<double>& errors) {
  const ErrorSummary summary = summarized(errors);
  return fmt::format(
      "{}: {} points: |error| mean {:.2f} %, median {:.2f} %, 90th percentile {:.2f} %, maximum {:.2f} %",
      name, summary.count, 100 * summary.mean, 100 * summary.median, 100 * summary.p90,
      100 * summary.maximum);
}

}  // namespace

std::vector<PointOutcome> outcomes_of(const Results& predicted, const Results& samples, int ranks) {
  const auto measured = by_point(samples);
  std::vector<PointOutcome> outcomes;
  for (const Row& row : predicted.rows) {
    const auto found = measured.find(row.text("point"));
    if (found == measured.end() || found->second.seconds.empty()) continue;
    const Quantiles interval = median_interval(found->second.seconds, {.seed = 1});
    PointOutcome one;
    one.point = found->first;
    one.strategy = row.text("strategy");
    one.ranks = ranks;
    one.repeats = static_cast<int>(found->second.seconds.size());
    one.disturbed = found->second.disturbed;
    one.predicted = row.number("step_seconds").value_or(0);
    one.predicted_compute = row.number("compute_seconds").value_or(0);
    one.measured = interval.median;
    one.low = interval.low;
    one.high = interval.high;
    one.measured_compute = median_of(found->second.compute);
    outcomes.push_back(one);
  }
  return outcomes;
}

Results results_of(const std::vector<PointOutcome>& outcomes, const std::string& scenario,
                   const std::string& cluster) {
  Results results{scenario, {}};
  for (const PointOutcome& one : outcomes) {
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
    row.set("disturbed", std::int64_t{one.disturbed});
    results.rows.push_back(std::move(row));
  }
  return results;
}

SpeedOrder order_of(const std::vector<PointOutcome>& outcomes) {
  SpeedOrder order;
  for (std::size_t a = 0; a < outcomes.size(); ++a) {
    for (std::size_t b = a + 1; b < outcomes.size(); ++b) {
      const PointOutcome &one = outcomes[a], &other = outcomes[b];
      if (one.low <= other.high && other.low <= one.high) continue;
      ++order.pairs;
      if ((one.predicted < other.predicted) == (one.measured < other.measured)) ++order.right;
    }
  }
  return order;
}

std::vector<std::string> summary_lines(const std::vector<PointOutcome>& outcomes) {
  std::map<std::string, std::vector<double>> errors;
  std::vector<double> all;
  for (const PointOutcome& one : outcomes) {
    errors[one.strategy].push_back(one.error());
    all.push_back(one.error());
  }
  std::vector<std::string> lines;
  for (const auto& [strategy, own] : errors) lines.push_back(line(strategy, own));
  if (errors.size() > 1) lines.push_back(line("all", all));
  const SpeedOrder order = order_of(outcomes);
  if (order.pairs > 0) {
    lines.push_back(
        fmt::format("order by speed: right in {} of {} pairs whose intervals do not overlap ({:.1f} %)",
                    order.right, order.pairs, 100.0 * order.right / order.pairs));
  }
  return lines;
}

}  // namespace stepcast
