#pragma once

#include <optional>

#include "campaigns/faults.hpp"
#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// `faults:` of a scenario. The simulation of the steps gives the time of the training later.
struct FaultOptions {
  Faults faults;               ///< `training` is not set, and `exchange` only if the scenario gives it
  double steps = 0;            ///< steps of the training; 0: the epochs of the scenario
  bool best_interval = false;  ///< `interval: best`
  int draws = 64;
};

/// The default response to a failure: asynchronous plans and block strategies (model averaging, block
/// momentum) shrink, all others restart.
FailureResponse default_response(const Plan& plan, const std::string& strategy);

/// Number of nodes that hold a rank of the plan.
int nodes_of(const Plan& plan, const Platform& platform);

/// Reads `faults:`. @throws InputError
FaultOptions read_faults(const YamlValue& value, const Plan& plan, const Platform& platform,
                         const std::string& strategy);

}  // namespace stepcast
