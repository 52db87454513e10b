#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/gnuplot.hpp"

namespace stepcast {

/// One point of the sweep.
struct BreakdownBar {
  std::string label = {};            ///< such as "256" or "ring, 256"
  std::vector<double> seconds = {};  ///< one entry a part; missing ones count as 0
};

struct BreakdownPlot {
  std::string title = {};
  std::string label_name = "workers";   ///< what the labels are
  std::vector<std::string> parts = {};  ///< "compute", "exposed communication", from the bottom up
  std::vector<BreakdownBar> bars = {};
  std::string quantity = "mean step";  ///< that the parts make up
};

/// One stacked bar a point: where the time goes, in h, s, ms or us. Nothing without bars or parts.
std::optional<PlotScript> breakdown_script(const BreakdownPlot& plot);

}  // namespace stepcast
