#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/gnuplot.hpp"
#include "report/sensitivity.hpp"

namespace stepcast {

struct SensitivityPlot {
  std::string title = {};
  std::string result = {};               ///< whose variance: "step time at 256 workers"
  std::vector<Sensitivity> shares = {};  ///< drawn from the top down in this order; the first 20
};

/// Horizontal bars: the share of the result's variance that each assumption explains. Nothing without shares.
std::optional<PlotScript> sensitivity_script(const SensitivityPlot& plot);

}  // namespace stepcast
