#include "commands/validate/validation_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <sstream>
#include <variant>

#include "commands/learn/learning_tables.hpp"
#include "core/os/files.hpp"
#include "report/plots/breakdown.hpp"
#include "report/plots/scatter.hpp"
#include "report/results/manifest.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"
#include "validate/compare/learning_curves.hpp"
#include "validate/compare/point_comparison.hpp"

namespace stepcast {
namespace {

/// @param scale  factor from the compared values to the unit of `quantity`
std::optional<PlotScript> scatter(const std::vector<PointComparison>& comparisons, const std::string& title,
                                  const std::string& quantity, double scale) {
  ScatterPlot plot;
  plot.title = title;
  plot.quantity = quantity;
  std::map<std::string, ScatterSeries> series;
  for (const PointComparison& one : comparisons) {
    series[one.strategy].name = one.strategy;
    series[one.strategy].points.emplace_back(scale * one.measured, scale * one.predicted);
  }
  for (auto& [strategy, own] : series) plot.series.push_back(std::move(own));
  return scatter_script(plot);
}

/// Short label of a point, without its keys: "ring, 2 MiB" for "strategy.all_reduce=ring, strategy.bucket=2
/// MiB", and "spatial, [2, 2]" for "strategy={kind: spatial, split: [2, 2]}".
std::string values_of(const std::string& point) {
  std::string values;
  for (std::size_t at = 0; (at = point.find_first_of("=:", at)) != std::string::npos;) {
    at = std::min(point.find_first_not_of(' ', at + 1), point.size());
    if (at == point.size() || point[at] == '{') continue;
    const std::size_t list = point[at] == '[' ? point.find(']', at) : at;
    const std::size_t end = std::min(point.find_first_of(",}", list), point.size());
    values += (values.empty() ? "" : ", ") + point.substr(at, end - at);
    at = end;
  }
  return values;
}

BreakdownBar bar(const std::string& label, double step, double compute, double waiting) {
  const double computing = std::min(step, compute), waits = std::min(step - computing, waiting);
  return {label, {computing, step - computing - waits, waits}};
}

std::optional<PlotScript> bars(const std::vector<PointComparison>& comparisons, const std::string& name) {
  BreakdownPlot plot;
  plot.title = name + ": where the time goes";
  plot.label_name = "point: forecast left, real run right";
  plot.parts = {"compute", "exposed communication", "waiting for the slowest"};
  for (const PointComparison& one : comparisons) {
    plot.bars.push_back(
        bar(values_of(one.point), one.predicted, one.predicted_compute, one.predicted_waiting));
    plot.bars.push_back(bar("", one.measured, one.measured_compute, one.measured_waiting));
  }
  return breakdown_script(plot);
}

void draw(const std::optional<PlotScript>& script, const std::string& file,
          const std::filesystem::path& folder) {
  if (!script) return;
  if (const auto complaint = draw_plot(folder, file, *script)) fmt::print("{}\n", *complaint);
}

}  // namespace

void plot_validation(const std::vector<PointComparison>& comparisons, const std::string& name,
                     const std::filesystem::path& folder) {
  draw(scatter(comparisons, name + ": predicted against measured", "step time [ms]", 1e3), "scatter", folder);
  draw(bars(comparisons, name), "breakdown", folder);
}

void plot_comparison(const std::vector<PointComparison>& comparisons, const std::string& column,
                     const std::filesystem::path& folder) {
  const bool step = column == "step_seconds";
  draw(scatter(comparisons, "Predicted against measured", step ? "step time [ms]" : column, step ? 1e3 : 1),
       "scatter", folder);
}

namespace {

Table outcome_table(const std::vector<PointComparison>& comparisons) {
  Table table;
  table.columns = {{"point", "", Align::left, 60},
                   {"predicted"},
                   {"measured"},
                   {"95 % interval", "%"},
                   {"error", "%"},
                   {"compute predicted"},
                   {"measured"},
                   {"discarded runs"}};
  for (const PointComparison& one : comparisons) {
    table.rows.push_back({one.point, human(Seconds{one.predicted}), human(Seconds{one.measured}),
                          interval_text(one), fmt::format("{:+.1f}", 100 * one.error()),
                          human(Seconds{one.predicted_compute}), human(Seconds{one.measured_compute}),
                          std::to_string(one.disturbed)});
  }
  return table;
}

/// Compares when the forecast trainings and the real ones reach the target loss.
void report_times_to_loss(const LearningForecast& forecast, const Results& learning,
                          const std::filesystem::path& folder) {
  const double target = *forecast.target_loss;
  const auto predicted = learned_runs(forecast.rows, target), measured = learned_runs(learning, target);
  const Results times = times_to_loss(learning.scenario, target, predicted, measured);
  write_atomically(folder / "time-to-loss.csv", to_csv(times));
  add_json_rows("time_to_loss", times);
  const auto predicted_points = learned_points(predicted), points = learned_points(measured);
  fmt::print("{}", to_string(times_to_loss_table(target, predicted_points, points), terminal_width()));
  CurvePlot plot = time_to_target_plot(learning.scenario, points, target, predicted_points);
  plot.quantity = "seconds";
  draw(curve_script(plot), "time-to-loss", folder);
}

std::filesystem::path samples_file(const std::filesystem::path& folder) {
  return folder / "samples.jsonl";
}

Results measured_samples(const std::filesystem::path& folder) {
  const auto file = samples_file(folder);
  return read_json_lines(read_file(file), file.string(), TornLine::drop);
}

/// The row of a point in the first forecast, with the means of its numbers over all forecasts.
Row mean_row(const std::vector<RealForecast>& forecasts, std::size_t point) {
  Row mean = forecasts.front().steps.rows[point];
  for (auto& [column, cell] : mean.cells) {
    if (!std::holds_alternative<double>(cell)) continue;
    double sum = 0;
    for (const RealForecast& one : forecasts) sum += one.steps.rows[point].number(column).value_or(0);
    cell = sum / forecasts.size();
  }
  return mean;
}

/// Writes and prints loss and accuracy, if the scenario learns.
void report_learning(const RealForecast& predicted, const std::filesystem::path& folder) {
  const auto file = folder / "learning.jsonl";
  if (!std::filesystem::exists(file)) return;
  const Results learning =
      with_forecast(read_json_lines(read_file(file), file.string(), TornLine::drop), predicted.steps);
  write_atomically(folder / "learning.csv", to_csv(learning));
  draw(curve_script(loss_curves(learning)), "loss-vs-time", folder);
  if (predicted.learning.target_loss) return report_times_to_loss(predicted.learning, learning, folder);
  for (const std::string& line : learning_lines(learning)) fmt::print("{}\n", line);
}

}  // namespace

void freeze(const RealForecast& predicted, const std::filesystem::path& folder) {
  const std::string text = to_csv(predicted.steps);
  write_atomically(folder / "predicted.csv", text);
  const std::filesystem::path all_reduces = all_reduce_file(folder);
  std::string hashes = fmt::format("{}  predicted.csv\n{}  {}\n", sha256(text),
                                   sha256(read_file(all_reduces)), all_reduces.filename().string());
  if (predicted.learning.target_loss) {
    const std::string learned = to_csv(predicted.learning.rows);
    write_atomically(folder / "predicted-learning.csv", learned);
    hashes += fmt::format("{}  predicted-learning.csv\n", sha256(learned));
  }
  write_atomically(folder / "predicted.sha256", hashes);
  if (isatty(2) != 0) fmt::print(stderr, "\r{:100}\r", "");  // erases the progress line
  fmt::print("forecast of {} points written before the runs: SHA-256 {}\n", predicted.steps.rows.size(),
             sha256(text));
  std::fflush(stdout);
}

std::vector<PointComparison> compare_runs(const Results& predicted, const std::string& cluster, int ranks,
                                          StepStatistic statistic, const std::filesystem::path& folder) {
  const Results samples = measured_samples(folder);
  auto comparisons = compare_points(predicted, samples, {.statistic = statistic});
  for (PointComparison& one : comparisons) one.ranks = ranks;  // all ranks, including servers
  write_atomically(folder / "samples.csv", to_csv(samples));
  write_atomically(folder / "measured.csv", to_csv(results_of(comparisons, predicted.scenario, cluster)));
  return comparisons;
}

std::filesystem::path forecast_folder(const std::filesystem::path& folder, std::size_t forecast) {
  return folder / fmt::format("forecast-{}", forecast);
}

void keep_forecast(const std::vector<std::string>& measured, std::size_t forecast,
                   const std::filesystem::path& folder) {
  const auto own = forecast_folder(folder, forecast);
  std::filesystem::create_directories(own);
  std::vector<std::string> files{"predicted.csv", "predicted.sha256",
                                 all_reduce_file(folder).filename().string()};
  files.insert(files.end(), measured.begin(), measured.end());
  for (const std::string& file : files) write_atomically(own / file, read_file(folder / file));
}

RealForecast join_forecasts(const std::vector<RealForecast>& forecasts, const std::filesystem::path& folder) {
  RealForecast mean{{forecasts.front().steps.scenario, {}}, {}};
  for (std::size_t point = 0; point < forecasts.front().steps.rows.size(); ++point)
    mean.steps.rows.push_back(mean_row(forecasts, point));
  std::string hashes;
  for (std::size_t forecast = 1; forecast <= forecasts.size(); ++forecast) {
    const auto own = forecast_folder(folder, forecast);
    std::istringstream lines(read_file(own / "predicted.sha256"));
    for (std::string hash, file; lines >> hash >> file;)
      hashes += fmt::format("{}  {}/{}\n", hash, own.filename().string(), file);
  }
  write_atomically(folder / "predicted.csv", to_csv(mean.steps));
  write_atomically(folder / "predicted.sha256", hashes);
  return mean;
}

std::vector<std::string> forecast_lines(const std::vector<RealForecast>& forecasts, StepStatistic statistic,
                                        const std::filesystem::path& folder) {
  const Results samples = measured_samples(folder);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    Results own{samples.scenario, {}};
    std::ranges::copy_if(samples.rows, std::back_inserter(own.rows), [i](const Row& row) {
      return row.number("forecast") == static_cast<double>(i + 1);
    });
    std::vector<double> errors;
    for (const PointComparison& one : compare_points(forecasts[i].steps, own, {.statistic = statistic}))
      errors.push_back(std::abs(one.error()));
    if (errors.empty()) continue;
    lines.push_back(fmt::format("forecast {}: |error| mean {:.2f} %, maximum {:.2f} %", i + 1,
                                100 * mean(errors), 100 * *std::ranges::max_element(errors)));
  }
  return lines;
}

void report_validation(const RealForecast& forecast, const std::string& cluster, int ranks,
                       StepStatistic statistic, const std::filesystem::path& folder) {
  const Results& predicted = forecast.steps;
  const auto comparisons = compare_runs(predicted, cluster, ranks, statistic, folder);
  add_json_rows("measured", results_of(comparisons, predicted.scenario, cluster));
  fmt::print("{}", to_string(outcome_table(comparisons), terminal_width()));
  for (const std::string& line : summary_lines(comparisons)) fmt::print("{}\n", line);
  plot_validation(comparisons, predicted.scenario, folder);
  report_learning(forecast, folder);
  fmt::print("written: {}\n", folder.string());
}

std::string measured_so_far(const std::filesystem::path& folder) {
  const auto file = samples_file(folder);
  if (!std::filesystem::exists(file)) return "no run was measured yet";
  return fmt::format("{} runs measured so far: {}", measured_samples(folder).rows.size(), file.string());
}

}  // namespace stepcast
