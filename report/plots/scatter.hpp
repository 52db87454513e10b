#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/plots/style.hpp"

namespace stepcast {

struct ScatterSeries {
  std::string name = {};
  std::vector<std::pair<double, double>> points = {};  ///< (measured, predicted), > 0
};

struct ScatterPlot {
  std::string title = {};
  std::string quantity = "step time [ms]";  ///< with its unit; applies to both axes
  double band = 0.05;                       ///< half width of the grey band, as a fraction
  std::vector<ScatterSeries> series = {};
};

/// A plot of predicted against measured values with the line of equality and a band of +-5 %; logarithmic if
/// the values span more than a factor of ten. Points that are not above 0 are left out. Returns nothing if no
/// point remains.
std::optional<PlotScript> scatter_script(const ScatterPlot& plot);

}  // namespace stepcast
