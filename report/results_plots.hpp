#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/plot_breakdown.hpp"
#include "report/plot_campaign.hpp"
#include "report/plot_scaling.hpp"
#include "report/plot_sensitivity.hpp"
#include "report/results.hpp"

namespace stepcast {

/// Throughput and efficiency of each series (see series.hpp). `published` holds rows of published.csv:
/// figures of the columns samples_per_second, speedup and efficiency, and of times of a step, an epoch, a
/// sweep and a training, are turned into throughput and efficiency by the point's own row.
ScalingPlot scaling_plot(const Results& results, const Results& published,
                         const std::vector<std::string>& sweep);

/// A bar a point: compute and exposed communication, then waiting for the slowest and data loading where any
/// point has some. These are means over steps, so a bar is as high as the mean step, not the median one.
BreakdownPlot breakdown_plot(const Results& results, const std::vector<std::string>& sweep);

/// A bar a point: where the hours of a training with faults went, what noise of steps costs included. Points
/// without faults have none.
BreakdownPlot training_plot(const Results& results, const std::vector<std::string>& sweep);

/// A bar a point: makespan of the campaign, and what its devices do. Points without one have none.
CampaignPlot campaign_plot(const Results& results, const std::vector<std::string>& sweep);

/// The last point of sensitivity.csv.
SensitivityPlot sensitivity_plot(const Results& sensitivity);

/// Rows of sensitivity.csv: scenario, point, column, assumption, variance_share.
Results sensitivity_results(const std::string& scenario, const std::string& point, const std::string& column,
                            const std::vector<Sensitivity>& shares);

/// Draws every plot for which FOLDER holds the data: scaling, breakdown, training and campaign from
/// results.csv (and published.csv), and sensitivity from sensitivity.csv. The sweep is taken from
/// manifest.json.
/// @return lines to print about plots that could not be drawn
/// @throws InputError where results.csv is missing or a file is malformed
std::vector<std::string> draw_results(const std::filesystem::path& folder);

}  // namespace stepcast
