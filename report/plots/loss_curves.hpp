#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/plots/style.hpp"

namespace stepcast {

/// The range of a quantity at one time.
struct CurveRange {
  double seconds = 0, low = 0, high = 0;
};

/// A quantity over time, forecast and measured.
struct Curve {
  std::string name = {};
  std::vector<std::pair<double, double>> measured = {};  ///< (seconds, value)
  std::vector<std::pair<double, double>> forecast = {};  ///< (forecast seconds, measured value)
  std::vector<CurveRange> band = {};                     ///< drawn behind the measured curve
};

struct CurvePlot {
  std::string title = {};
  std::string quantity = "loss";
  std::string time = "seconds";
  std::vector<Curve> curves = {};
};

/// A plot with one panel over time: measured curves are solid lines with points and shaded bands, forecast
/// ones are dashed.
/// Returns nothing if no curve has two points.
std::optional<PlotScript> curve_script(const CurvePlot& plot);

}  // namespace stepcast
