#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plots/breakdown.hpp"
#include "report/plots/scaling.hpp"
#include "report/plots/sensitivity_bars.hpp"

namespace stepcast {

/// Text for HTML and SVG, in elements and in quoted attributes: markup characters are escaped, control
/// characters and invalid UTF-8 replaced.
std::string escaped(const std::string& text);

/// SVG of throughput (both axes logarithmic) or efficiency [%] against workers: a line for each series with
/// its interval as a band, published figures as open diamonds. Every mark has its numbers as a title. Only
/// the first 30 series are drawn. Empty if no series has two points.
std::string throughput_chart(const ScalingPlot& plot);
std::string efficiency_chart(const ScalingPlot& plot);

/// SVG with a horizontal stacked bar for each of the first 60 points. Empty without bars.
std::string breakdown_chart(const BreakdownPlot& plot);

/// SVG with a horizontal bar for each assumption's share of the variance. Empty without shares.
std::string sensitivity_chart(const SensitivityPlot& plot);

}  // namespace stepcast
