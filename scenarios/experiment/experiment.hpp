#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "platforms/topology.hpp"
#include "scenarios/experiment/overrides.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/read_campaign.hpp"
#include "scenarios/reader/read_faults.hpp"
#include "scenarios/reader/read_learning.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

/// One run, ready to be simulated: a point of a scenario with all its files read. Plain data.
struct Experiment {
  Model model;
  YamlNode model_name;  ///< the scenario's name of the model, or its file; nothing: the scenario holds it
  Device device;
  Platform platform;
  LinkBandwidths bandwidths;  ///< after background traffic
  std::string strategy;       ///< kind of the strategy
  Plan plan;
  Noise noise;
  Fidelity fidelity = Fidelity::automatic;
  LinkSharing link_sharing = LinkSharing::automatic;
  Folding fold = Folding::automatic;
  std::uint64_t seed = 1;
  int steps = 1;
  double epoch_samples = 0;  ///< 0: not given
  double epochs = 0;         ///< 0: not given
  std::optional<FaultOptions> faults;
  std::optional<CampaignOptions> campaign;
  std::optional<LearningOptions> learning;
};

/// `document` with `values` set in it, short paths first. @throws InputError
YamlNode document_with(YamlNode document, std::vector<Assignment> values, Library& library);

/// Reads document_with(document, values), with the values of its software stack. docs/reference/scenarios.md
/// lists the keys.
/// @throws InputError
Experiment build_experiment(YamlNode document, std::vector<Assignment> values, Library& library,
                            const Overrides& overrides = {});

/// Nodes whose devices or hosts take part.
int nodes_in_use(const Experiment& experiment);

/// Adds to the complete plan of the experiment the keys that the scenario gives but that have no effect: keys
/// outside of `strategy`, and keys that any strategy may have.
void note_ineffective_options(const YamlMap& map, Experiment& experiment);

/// The keys with which an experiment that does not fit into the memory of its devices would fit, each changed
/// alone and as little as was tried, such as "batch_per_worker: 128" and "strategy.recompute: true": smaller
/// batches, recomputation, more micro-batches, mixed precision, partitioned state and more devices a replica.
/// Each is tried by building the experiment again.
/// @param values      those that give `experiment` with `document`
/// @param experiment  build_experiment(document, values, library), whose plan does not fit
std::vector<std::string> fitting_keys(const YamlNode& document, const std::vector<Assignment>& values,
                                      const Experiment& experiment, Library& library);

}  // namespace stepcast
