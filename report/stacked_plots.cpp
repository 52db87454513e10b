#include <algorithm>
#include <utility>

#include "report/plotted_rows.hpp"
#include "report/results_plots.hpp"
#include "report/series.hpp"

namespace stepcast {
namespace {

/// A column, and what it is called in the legend.
using Part = std::pair<std::string, std::string>;
using Parts = std::vector<Part>;

/// Parts from the bottom up; the first `kept` are always shown, so that their colours are always the same.
Parts shown_parts(const Results& results, const Parts& parts, std::size_t kept) {
  Parts shown;
  for (const Part& part : parts) {
    const bool any = std::any_of(results.rows.begin(), results.rows.end(),
                                 [&](const Row& row) { return row.number(part.first).value_or(0) > 0; });
    if (shown.size() < kept || any) shown.push_back(part);
  }
  return shown;
}

std::vector<std::string> names_of(const Parts& parts) {
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.second);
  return names;
}

std::vector<double> values_of(const Row& row, const Parts& parts) {
  std::vector<double> values;
  for (const Part& part : parts) values.push_back(row.number(part.first).value_or(0));
  return values;
}

/// What bars are called: by the values that tell them apart, and by their workers where these differ too.
class Labels {
 public:
  Labels(const Results& results, const std::vector<std::string>& sweep)
      : results_(results), series_(series_columns(results, sweep)) {
    const auto other = [&](const Row& row) { return row.text("workers") != results.rows[0].text("workers"); };
    workers_ = series_.empty() || std::ranges::any_of(results.rows, other);
  }

  std::string of(const Row& row) const {
    const auto name = series_name(results_, row, series_);
    if (!workers_ && !name.empty()) return name;
    return (name.empty() ? "" : name + ", ") + row.text("workers");
  }
  std::string axis() const {
    if (!workers_) return "point";
    return series_.empty() ? "workers" : "point (last number: workers)";
  }

 private:
  const Results& results_;
  std::vector<std::string> series_;
  bool workers_ = true;
};

/// The rows that have the column.
Results those_with(const std::string& column, Results results) {
  std::erase_if(results.rows, [&](const Row& row) { return !row.number(column); });
  return results;
}

BreakdownPlot stacked(const Results& results, const std::vector<std::string>& sweep, const Parts& parts) {
  const Labels labels(results, sweep);
  BreakdownPlot plot{results.scenario, labels.axis(), names_of(parts), {}};
  for (const Row& row : results.rows) plot.bars.push_back({labels.of(row), values_of(row, parts)});
  return plot;
}

/// Seconds of the training itself, without what jitter and stragglers of its steps take; and what workers
/// that are always slow, and for a time, take together.
void set_useful_and_slow(Row& row) {
  const auto loss = [&](const char* column) { return std::max(0.0, row.number(column).value_or(0)); };
  const double training =
      *row.number("training_hours_with_faults") * 3600 * row.number("useful_share").value_or(1);
  const double stragglers = loss("lost_to_stragglers_seconds");
  row.set("useful", training - stragglers - loss("lost_to_jitter_seconds"));
  row.set("slow", stragglers + loss("lost_to_slow_workers_seconds"));
}

}  // namespace

PlottedValue plotted(const Row& row, const std::string& column) {
  return {row.number(column).value_or(0), row.number(column + "_low"), row.number(column + "_high")};
}

BreakdownPlot breakdown_plot(const Results& results, const std::vector<std::string>& sweep) {
  const Parts parts{{"compute_seconds", "compute"},
                    {"exposed_communication_seconds", "exposed communication"},
                    {"waiting_seconds", "waiting for the slowest"},
                    {"data_loading_seconds", "data loading"}};
  return stacked(results, sweep, shown_parts(results, parts, 2));
}

BreakdownPlot training_plot(const Results& results, const std::vector<std::string>& sweep) {
  const Parts parts{{"useful", "undisturbed training"},
                    {"lost_to_checkpoints_seconds", "checkpoints"},
                    {"lost_to_rework_seconds", "done again"},
                    {"lost_to_restart_seconds", "repair and restart"},
                    {"lost_to_missing_workers_seconds", "workers away"},
                    {"slow", "slow workers"},
                    {"lost_to_jitter_seconds", "jitter"}};
  Results rows = those_with("training_hours_with_faults", results);
  for (Row& row : rows.rows) set_useful_and_slow(row);
  BreakdownPlot plot = stacked(rows, sweep, shown_parts(rows, parts, 1));
  for (BreakdownBar& bar : plot.bars) {
    for (double& seconds : bar.seconds) seconds = std::max(0.0, seconds);
  }
  plot.quantity = "training with faults";
  return plot;
}

CampaignPlot campaign_plot(const Results& results, const std::vector<std::string>& sweep) {
  const Results rows = those_with("makespan_hours", results);
  const Parts all{{"device_utilization", "training"},
                  {"idle_optimizer_share", "waiting for the optimizer"},
                  {"idle_fold_share", "waiting for the slowest fold"},
                  {"idle_generation_share", "waiting for the generation"},
                  {"idle_tail_share", "nothing left to try"},
                  {"idle_driver_share", "devices of master and optimizers"}};
  const Parts parts = shown_parts(rows, all, 1);
  const Labels labels(rows, sweep);
  CampaignPlot plot{rows.scenario, labels.axis(), names_of(parts), {}};
  for (const Row& row : rows.rows)
    plot.bars.push_back({labels.of(row), plotted(row, "makespan_hours"), values_of(row, parts)});
  return plot;
}

}  // namespace stepcast
