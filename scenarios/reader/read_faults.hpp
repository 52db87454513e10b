#pragma once

#include <string>
#include <vector>

#include "campaigns/faults.hpp"
#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "platforms/topology.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The links whose names match a text with `*`, `?` and `[...]`, ascending. @throws InputError if none does,
/// with the nearest name
std::vector<int> read_link_names(const YamlValue& pattern, const Topology& topology);

/// Links that fail together, one of `faults.links`.
struct FailedLinks {
  std::vector<int> ids;  ///< of Topology, ascending
  double share = 0;      ///< share of their bandwidth that is left; 0: they are dead
};

/// `faults:` of a scenario. The simulation of the steps gives the time of the training later.
struct FaultOptions {
  Faults faults;                   ///< `training` is not set, and `exchange` only if the scenario gives it
  std::vector<FailedLinks> links;  ///< of each of `faults.links`, whose `speed` is not set
  double steps = 0;                ///< steps of the training; 0: the epochs of the scenario
  bool best_interval = false;      ///< `interval: best`
  int draws = 64;
};

/// The default response to a failure: asynchronous plans and block strategies (model averaging, block
/// momentum) shrink, all others restart.
FailureResponse default_response(const Plan& plan, const std::string& strategy);

/// Number of nodes with a rank of the plan that live routes do not connect with the greater part of the
/// others, or with the storage from which the plan reads its input. @param platform  with its dead links
int cut_off_nodes(const Plan& plan, const Platform& platform);

/// Number of nodes that hold a rank of the plan.
int nodes_of(const Plan& plan, const Platform& platform);

/// Reads `faults:`. @throws InputError
FaultOptions read_faults(const YamlValue& value, const Plan& plan, const Platform& platform,
                         const std::string& strategy);

}  // namespace stepcast
