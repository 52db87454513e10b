#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/gnuplot.hpp"
#include "report/plot_scaling.hpp"

namespace stepcast {

/// One campaign.
struct CampaignBar {
  std::string label = {};
  PlottedValue hours = {};          ///< until the last point is known
  std::vector<double> shares = {};  ///< of the devices' time, one entry a part; the first is training
};

struct CampaignPlot {
  std::string title = {};
  std::string label_name = "workers";   ///< what the labels are
  std::vector<std::string> parts = {};  ///< "training", then reasons to be idle, from the bottom up
  std::vector<CampaignBar> bars = {};
};

/// Above the makespan of each campaign with its interval, below what the devices do meanwhile. Nothing
/// without bars or parts, or where a makespan is not positive.
std::optional<PlotScript> campaign_script(const CampaignPlot& plot);

}  // namespace stepcast
