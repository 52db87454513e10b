#include "commands/validation_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/plot_breakdown.hpp"
#include "report/plot_scatter.hpp"

namespace stepcast {
namespace {

/// @param scale  from what was compared to the quantity's unit
std::optional<PlotScript> scatter(const std::vector<PointOutcome>& outcomes, const std::string& title,
                                  const std::string& quantity, double scale) {
  ScatterPlot plot;
  plot.title = title;
  plot.quantity = quantity;
  std::map<std::string, ScatterSeries> series;
  for (const PointOutcome& one : outcomes) {
    series[one.strategy].name = one.strategy;
    series[one.strategy].points.emplace_back(scale * one.measured, scale * one.predicted);
  }
  for (auto& [strategy, own] : series) plot.series.push_back(std::move(own));
  return scatter_script(plot);
}

/// "ring, 2 MiB" of "strategy.all_reduce=ring, strategy.bucket=2 MiB", "spatial, [2, 2]" of
/// "strategy={kind: spatial, split: [2, 2]}": a bar has little room.
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

std::optional<PlotScript> bars(const std::vector<PointOutcome>& outcomes, const std::string& name) {
  BreakdownPlot plot;
  plot.title = name + ": where the time goes";
  plot.label_name = "point: forecast left, real run right";
  plot.parts = {"compute", "exposed communication", "waiting for the slowest"};
  for (const PointOutcome& one : outcomes) {
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

void plot_validation(const std::vector<PointOutcome>& outcomes, const std::string& name,
                     const std::filesystem::path& folder) {
  draw(scatter(outcomes, name + ": predicted against measured", "step time [ms]", 1e3), "scatter", folder);
  draw(bars(outcomes, name), "breakdown", folder);
}

void plot_comparison(const std::vector<PointOutcome>& outcomes, const std::string& column,
                     const std::filesystem::path& folder) {
  const bool step = column == "step_seconds";
  draw(scatter(outcomes, "Predicted against measured", step ? "step time [ms]" : column, step ? 1e3 : 1),
       "scatter", folder);
}

}  // namespace stepcast
