#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/os/files.hpp"
#include "report/plots/breakdown.hpp"
#include "report/plots/scaling.hpp"
#include "report/plots/style.hpp"
#include "report/results/results.hpp"
#include "report/statistics/statistics.hpp"

namespace stepcast {

struct SensitivityPlot {
  std::string title = {};
  std::string result = {};               ///< name of the result, such as "step time at 256 workers"
  std::vector<Sensitivity> shares = {};  ///< from the top down; only the first 20 are drawn
};

/// A plot with horizontal bars: the share of the result's variance that each assumption explains. Nothing
/// without shares.
std::optional<PlotScript> sensitivity_script(const SensitivityPlot& plot);

/// One campaign.
struct CampaignBar {
  std::string label = {};
  PlottedValue hours = {};          ///< makespan [h]
  std::vector<double> shares = {};  ///< shares of the devices' time, by part; the first part is training
};

struct CampaignPlot {
  std::string title = {};
  std::string label_name = "workers";   ///< name of the axis of labels
  std::vector<std::string> parts = {};  ///< names from the bottom up: "training", then the reasons to be idle
  std::vector<CampaignBar> bars = {};
};

/// A plot with two panels: above, the makespan of each campaign with its interval; below, how the devices
/// spend that time. Returns nothing without bars or parts, or if a makespan is not positive.
std::optional<PlotScript> campaign_script(const CampaignPlot& plot);

/// Throughput and efficiency of each series (series_columns). `published` holds the rows of published.csv.
/// Their figures for the columns samples_per_second, speedup and efficiency, and for the times of a step, an
/// epoch, a sweep and a training, are converted to throughput and efficiency with the row of their point. A
/// row whose `measured` is true is a measurement.
ScalingPlot scaling_plot(const Results& results, const Results& published,
                         const std::vector<std::string>& sweep);

/// A bar per point: compute and exposed communication; waiting for the slowest and data loading if any point
/// has some. The parts are those of the median step.
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
