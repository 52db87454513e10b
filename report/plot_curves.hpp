#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/gnuplot.hpp"

namespace stepcast {

/// A quantity that falls or rises over time, as it was forecast and as it was measured.
struct Curve {
  std::string name = {};
  std::vector<std::pair<double, double>> measured = {};  ///< (seconds, value)
  std::vector<std::pair<double, double>> forecast = {};  ///< the same values at the times forecast for them
};

struct CurvePlot {
  std::string title = {};
  std::string quantity = "loss";
  std::string time = "seconds";
  std::vector<Curve> curves = {};
};

/// One panel over time: measured in solid lines with points, forecast dashed. Nothing when no curve has two
/// points.
std::optional<PlotScript> curve_script(const CurvePlot& plot);

}  // namespace stepcast
