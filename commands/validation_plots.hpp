#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "validate/outcome.hpp"

namespace stepcast {

/// scatter.svg: predicted against measured. breakdown.svg: two bars a point, the forecast's and the real
/// run's, each compute and what comes on top (communication that compute did not hide, waiting), so that a
/// miss shows its cause. What gnuplot complains about is printed.
void plot_validation(const std::vector<PointOutcome>& outcomes, const std::string& name,
                     const std::filesystem::path& folder);

/// scatter.svg alone, of any column.
void plot_comparison(const std::vector<PointOutcome>& outcomes, const std::string& column,
                     const std::filesystem::path& folder);

}  // namespace stepcast
