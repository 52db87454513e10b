#pragma once

#include <string>

#include "campaigns/option_search.hpp"
#include "campaigns/schedule.hpp"
#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// `campaign:` of a scenario. The simulation of the steps gives the time of a training later.
struct CampaignOptions {
  Campaign campaign;  ///< `training` is not set
  double steps = 0;   ///< steps of a training; 0: the epochs of the scenario
  int draws = 16;
  // The other members concern `stepcast learn` alone.
  SearchMethod method = SearchMethod::bayesian;
  std::string over;                ///< keys that the search chooses, as in `stepcast search --over`
  std::string objective = "loss";  ///< loss, which is minimised, or accuracy, which is maximised
};

/// Reads `campaign:`. @throws InputError, also if the platform has fewer devices than the campaign needs
CampaignOptions read_campaign(const YamlValue& value, const Plan& plan, const Platform& platform);

}  // namespace stepcast
