#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plots/gnuplot.hpp"
#include "report/plots/scaling.hpp"

namespace stepcast {

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

}  // namespace stepcast
