#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "data/dataset.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/arithmetic/optimizer.hpp"

namespace stepcast {

/// A claim about two points: a quantity of `point` is less than, more than or about equal to that of `over`.
/// `stepcast learn` says in which share of the seeds it holds.
struct LearningTrend {
  std::vector<Assignment> point, over;
  std::string quantity;  ///< one of learning_quantities()
  enum class Relation { less_than, more_than, equal, at_most };
  Relation relation = Relation::less_than;
  double within = 0;  ///< equal, at_most: largest difference, as a share of the quantity of `over`
  std::string source;
};

/// Quantities that a trend compares: loss, accuracy, loss_low_energy, seconds, seconds_to_target,
/// samples_to_target.
const std::vector<std::string>& learning_quantities();

/// Options by which `stepcast learn` and `validate` train the networks of a scenario. Forecasts by `run` do
/// not depend on it.
struct LearningOptions {
  int mini_batches = 1;     ///< mini-batches of each worker
  int evaluate_every = 10;  ///< mini-batches of a worker between two evaluations on held-out data
  Optimizer optimizer{};
  LearningRate rate;
  DataOptions data;
  std::optional<std::string> start;  ///< checkpoint file to start from
  /// First layer of a discriminator; the layers before it generate samples (a GAN).
  std::optional<std::string> discriminator;
  std::uint64_t seed = 1;  ///< seed of the initial parameters
  // The other members concern `stepcast learn` alone.
  int seeds = 1;                      ///< trainings of each point, each with other seeds
  int warm_start = 0;                 ///< mini-batches that one worker trains before all workers start
  std::optional<double> target_loss;  ///< loss whose time and samples are shown
  std::vector<LearningTrend> trends;
};

/// Reads `learning:`. @throws InputError
LearningOptions read_learning(const YamlValue& value);

}  // namespace stepcast
