#pragma once

#include <string>
#include <vector>

#include "commands/learn/learned_campaign.hpp"
#include "report/plots/loss_curves.hpp"
#include "report/results/results.hpp"
#include "report/text/text_table.hpp"

namespace stepcast {

/// campaign.csv: a row for each campaign and seed. `regret` is the distance of its best figure from the best
/// that any of the campaigns found.
Results campaign_results(const std::string& scenario, const std::vector<LearnedCampaign>& campaigns);

/// campaign-points.csv: a row for each point of every campaign, in the order of the proposals.
Results campaign_points(const std::string& scenario, const std::vector<LearnedCampaign>& campaigns);

/// The table for the terminal: medians over the seeds of each campaign. @param results  of campaign_results
Table campaign_table(const Results& results, const std::string& objective);

/// The best figure so far against simulated hours: medians over the seeds, and their range as a band. A curve
/// begins when every seed has a result.
CurvePlot best_against_hours(const std::string& scenario, const std::vector<LearnedCampaign>& campaigns);

/// Regret against the utilization of the devices, medians over the seeds: a curve for each combination of all
/// keys but `campaign.groups`. @param results  of campaign_results
CurvePlot regret_against_utilization(const Results& results);

}  // namespace stepcast
