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

/// "ring, 2 MiB" of "strategy.all_reduce=ring, strategy.bucket=2 MiB": a bar has little room.
std::string values_of(const std::string& point) {
  std::string values;
  bool in_value = false;
  for (const char c : point) {
    if (c == '=') {
      in_value = true;
    } else if (c == ',' && in_value) {
      values += ", ";
      in_value = false;
    } else if (in_value) {
      values += c;
    }
  }
  return values;
}

BreakdownBar bar(const std::string& label, double step, double compute) {
  return {label, {std::min(step, compute), std::max(0.0, step - compute)}};
}

std::optional<PlotScript> bars(const std::vector<PointOutcome>& outcomes, const std::string& name) {
  BreakdownPlot plot;
  plot.title = name + ": where the time goes";
  plot.label_name = "point: forecast left, real run right";
  plot.parts = {"compute", "exposed communication and waiting"};
  for (const PointOutcome& one : outcomes) {
    plot.bars.push_back(bar(values_of(one.point), one.predicted, one.predicted_compute));
    plot.bars.push_back(bar("", one.measured, one.measured_compute));
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
