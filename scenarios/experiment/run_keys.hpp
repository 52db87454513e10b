#pragma once

#include <cstdint>
#include <optional>

#include "core/yaml.hpp"
#include "models/network/model.hpp"
#include "platforms/platform.hpp"
#include "scenarios/experiment/placement.hpp"
#include "scenarios/reader/read_learning.hpp"
#include "strategies/plan/run_conditions.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

// Readers of the mappings of one run. Their keys are fields in the .cpp, from which the tables of
// scenarios/keys/scenario_keys.hpp come. All throw InputError.

/// `simulation:` of a run.
struct SimulationOptions {
  std::optional<int> steps;  ///< none: as many as the strategy needs
  std::uint64_t seed = 1;
  Fidelity fidelity = Fidelity::automatic;
  Folding fold = Folding::automatic;
  LinkSharing sharing = LinkSharing::automatic;
};

/// The keys of a run that need no other key to be read.
struct RunKeys {
  std::optional<Noise> noise;
  PlacementRule placement = PlacementRule::packed;
  SimulationOptions simulation;
  std::optional<LearningOptions> learning;
};
RunKeys read_run_keys(const YamlMap& map);

/// `epoch:` of a run. 0: not given.
struct DataSetSize {
  double samples = 0, epochs = 0;
};
DataSetSize read_epoch(const YamlValue& value, const Model& model);

/// Factors on the platform and on host work, which the default ranges of inputs set (`factors:`).
struct Factors {
  double inside_server_bandwidth = 1, between_servers_bandwidth = 1, message_overhead = 1,
         compute_slowdown = 1, kernel_start = 1, layer_times = 1, memory_bound_kernels = 1,
         flash_attention = 1, fp8_products = 1, host_work = 1;
};
Factors read_factors(const YamlValue& value);

}  // namespace stepcast
