#pragma once

#include <optional>
#include <string>

#include "core/yaml.hpp"
#include "data/dataset.hpp"
#include "strategies/arithmetic/optimizer.hpp"

namespace stepcast {

/// How `stepcast learn` and `validate` train the networks of a scenario. Forecasts by `run` do not depend on
/// it.
struct LearningOptions {
  int mini_batches = 1;     ///< mini-batches of each worker
  int evaluate_every = 10;  ///< mini-batches of a worker between two evaluations on held-out data
  Optimizer optimizer{};
  LearningRate rate;
  DataOptions data;
  std::optional<std::string> start;  ///< checkpoint file to start from
};

/// Reads `learning:`. @throws InputError
LearningOptions read_learning(const YamlValue& value);

}  // namespace stepcast
