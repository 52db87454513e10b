#pragma once

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
};

/// Reads `campaign:`. @throws InputError, also if the platform has fewer devices than the campaign needs
CampaignOptions read_campaign(const YamlValue& value, const Plan& plan, const Platform& platform);

}  // namespace stepcast
