#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platforms/link_bandwidths.hpp"
#include "scenarios/library.hpp"
#include "scenarios/read_campaign.hpp"
#include "scenarios/read_faults.hpp"
#include "scenarios/read_learning.hpp"
#include "strategies/conditions.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// One run, ready to be simulated: everything that a point of a scenario means. Plain data.
struct Experiment {
  Model model;
  Device device;
  Platform platform;
  LinkBandwidths bandwidths;  ///< after background traffic
  std::string strategy;       ///< kind
  Plan plan;
  Noise noise;
  Form form = Form::automatic;
  Folding fold = Folding::automatic;
  std::uint64_t seed = 1;
  int steps = 1;
  double epoch_samples = 0;  ///< 0: not given
  double epochs = 0;         ///< 0: not given
  std::optional<FaultOptions> faults;
  std::optional<CampaignOptions> campaign;
  std::optional<LearningOptions> learning;
};

/// Reads `document` with `values` set in it, shallow paths first. Keys: docs/scenarios.md. Throws InputError.
Experiment build_experiment(YamlNode document, std::vector<Assignment> values, Library& library);

}  // namespace stepcast
