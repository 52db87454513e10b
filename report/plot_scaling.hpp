#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/gnuplot.hpp"

namespace stepcast {

/// A figure and, for a forecast, its 5 % and 95 % quantile.
struct PlottedValue {
  double value = 0;
  std::optional<double> low = {};
  std::optional<double> high = {};
};

struct ScalingPoint {
  double workers = 1;
  PlottedValue throughput = {};
  std::optional<PlottedValue> efficiency =
      {};  ///< a fraction; nothing: against the series' smallest point, if there are two
};

/// What someone else measured.
struct PublishedPoint {
  double workers = 1;
  double throughput = 0;
  std::optional<double> efficiency = {};  ///< a fraction
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

/// Two panels: throughput against workers (both logarithmic) with the ideal lines, and efficiency against
/// workers. Intervals are bands, published figures open diamonds. Points whose workers or throughput are not
/// above 0 are left out. Nothing when no series has two numbers of workers.
std::optional<PlotScript> scaling_script(const ScalingPlot& plot);

}  // namespace stepcast
