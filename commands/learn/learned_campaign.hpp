#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "campaigns/search_method.hpp"
#include "commands/learn/learning_points.hpp"
#include "commands/search_space/search_space.hpp"
#include "report/plots/loss_curves.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {

/// A campaign whose trials were trained: a point of a scenario with one seed of the search.
struct LearnedCampaign {
  std::string point;      ///< its name
  std::int64_t seed = 0;  ///< from 1
  std::vector<SearchKey> keys = {};
  std::string objective = "loss";  ///< or accuracy: the mean over the folds
  std::vector<CampaignTrial> trials = {};
  CampaignTimes times = {};
};

/// True if the points of a scenario have both `campaign` and `learning`.
bool is_learned_campaign(const std::vector<LearningRun>& runs);

/// Runs the campaigns of a scenario side by side, each with `learning.seeds` searches. Every fold of every
/// point is trained as by `trained`, on its own part of the training data, in the time of the simulated
/// cluster. The seeds move only the search: all trainings have the same task and initial parameters. A
/// setting that two campaigns try is trained once; `job.finished` keeps the results.
/// @throws InputError for invalid keys, or if no point of a campaign can be trained
std::vector<LearnedCampaign> learned_campaigns(const LearningJob& job, const std::vector<LearningRun>& runs);

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
