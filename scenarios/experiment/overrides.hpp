#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "scenarios/reader/read_learning.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/plan/run_conditions.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// What a run knows better than the scenario: what it has measured, how long it is, which of several
/// trainings it is. Each value replaces that of the scenario.
struct Overrides {
  /// The ranks of a real run. A scenario without `workers` gets those that its servers leave, and one with
  /// more workers is refused.
  std::optional<int> ranks = {};
  std::optional<YamlNode> platform = {};              ///< a name or a whole platform
  std::optional<std::string> trace = {};              ///< a file, or derived
  std::optional<std::string> compression_times = {};  ///< a file, or a name in models/compression/
  std::optional<std::string> part_trace = {};         ///< a file
  std::optional<int> steps = {};
  std::optional<Noise::Jitter> jitter = {};
  std::uint64_t more_seed = 0;  ///< added to the seeds of the simulation, the parameters and generated data
  std::optional<int> mini_batches = {};  ///< of a training, which is evaluated at its end only
  MeasuredTimes measured = {};
};

/// The values of a scenario that the run's files replace.
std::vector<Assignment> file_values(const Overrides& overrides);

/// The values of `learning:` with those of the run.
void apply_training(const Overrides& overrides, LearningOptions& learning);

/// Workers of a real run with `ranks` ranks. @param map  the document
int workers_of_ranks(const YamlMap& map, int ranks);

}  // namespace stepcast
