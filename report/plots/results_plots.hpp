#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/os/missing_files.hpp"
#include "report/plots/breakdown.hpp"
#include "report/plots/campaign.hpp"
#include "report/plots/scaling.hpp"
#include "report/plots/sensitivity_bars.hpp"
#include "report/results/results.hpp"

namespace stepcast {

/// Throughput and efficiency of each series (series_columns). `published` holds the rows of published.csv.
/// Their figures for the columns samples_per_second, speedup and efficiency, and for the times of a step, an
/// epoch, a sweep and a training, are converted to throughput and efficiency with the row of their point.
ScalingPlot scaling_plot(const Results& results, const Results& published,
                         const std::vector<std::string>& sweep);

/// A bar per point: compute and exposed communication; waiting for the slowest and data loading if any point
/// has some. The values are means over steps, so the height of a bar is the mean step time, not the median.
BreakdownPlot breakdown_plot(const Results& results, const std::vector<std::string>& sweep);

/// A bar per point with faults: the parts of the training time with faults, including the cost of noise in
/// steps.
BreakdownPlot training_plot(const Results& results, const std::vector<std::string>& sweep);

/// A bar per point with a campaign: its makespan, and how the devices spend it.
CampaignPlot campaign_plot(const Results& results, const std::vector<std::string>& sweep);

/// The sensitivities of the last point in sensitivity.csv.
SensitivityPlot sensitivity_plot(const Results& sensitivity);

/// The content of sensitivity.csv, with the columns scenario, point, column, assumption, variance_share.
Results sensitivity_results(const std::string& scenario, const std::string& point, const std::string& column,
                            const std::vector<Sensitivity>& shares);

/// Plots that could not be drawn.
struct DrawnPlots {
  std::vector<std::string> complaints;  ///< lines to print
  MissingFiles missing;                 ///< files for which the disk has no room
};

/// Draws every plot for which FOLDER holds the data: scaling, breakdown, training and campaign from
/// results.csv and published.csv, and sensitivity from sensitivity.csv. The keys of the sweep come from
/// manifest.json.
/// @throws InputError if results.csv is missing or a file is malformed
DrawnPlots draw_results(const std::filesystem::path& folder);

}  // namespace stepcast
