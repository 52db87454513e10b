#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plots/gnuplot.hpp"
#include "report/statistics/sensitivity.hpp"

namespace stepcast {

struct SensitivityPlot {
  std::string title = {};
  std::string result = {};               ///< name of the result, such as "step time at 256 workers"
  std::vector<Sensitivity> shares = {};  ///< from the top down; only the first 20 are drawn
};

/// A plot with horizontal bars: the share of the result's variance that each assumption explains. Nothing
/// without shares.
std::optional<PlotScript> sensitivity_script(const SensitivityPlot& plot);

}  // namespace stepcast
