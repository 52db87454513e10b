#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "campaigns/campaign_search.hpp"
#include "commands/learn/learning_points.hpp"
#include "commands/search_space.hpp"

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

}  // namespace stepcast
