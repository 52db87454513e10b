#pragma once

#include <optional>
#include <string>

#include "core/yaml.hpp"
#include "data/dataset.hpp"
#include "strategies/arithmetic/learning_rate.hpp"
#include "strategies/arithmetic/optimizer.hpp"

namespace stepcast {

/// What `stepcast learn` and `validate` teach the networks of a scenario. Forecasts of `run` do not depend on
/// it.
struct LearningOptions {
  int mini_batches = 1;     ///< of each worker
  int evaluate_every = 10;  ///< mini-batches of a worker between evaluations on held-out data
  Optimizer optimizer{};
  LearningRate rate;
  DataOptions data;
  std::optional<std::string> start;  ///< checkpoint to begin with
};

/// `learning:`. @throws InputError
LearningOptions read_learning(const YamlValue& value);

}  // namespace stepcast
