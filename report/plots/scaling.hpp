#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plots/style.hpp"

namespace stepcast {

/// A value and, for a forecast, its 5 % and 95 % quantiles.
struct PlottedValue {
  double value = 0;
  std::optional<double> low = {};
  std::optional<double> high = {};
};

struct ScalingPoint {
  double workers = 1;
  PlottedValue throughput = {};
  /// A fraction. If missing, it is computed relative to the series' smallest point, if the series has two
  /// points.
  std::optional<PlottedValue> efficiency = {};
};

/// A published measurement, or one from which the forecasts have learned.
struct PublishedPoint {
  double workers = 1;
  double throughput = 0;
  std::optional<double> efficiency = {};  ///< a fraction
  bool measured = false;                  ///< the forecasts have learned from it
};

/// One line of the plot, such as one algorithm.
struct ScalingSeries {
  std::string name = {};
  std::vector<ScalingPoint> points = {};  ///< in any order
  std::vector<PublishedPoint> published = {};
};

struct ScalingPlot {
  std::string title = {};
  std::string throughput_unit = "samples/s";
  std::vector<ScalingSeries> series = {};
};

/// A plot with two panels: throughput against workers (both logarithmic) with lines of ideal scaling, and
/// efficiency against workers. Intervals are bands, published figures are open diamonds. Points whose workers
/// or throughput are not above 0 are left out. Returns nothing if no series has two different numbers of
/// workers.
std::optional<PlotScript> scaling_script(const ScalingPlot& plot);

}  // namespace stepcast
