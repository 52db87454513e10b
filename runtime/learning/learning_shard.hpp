#pragma once

#include <memory>
#include <vector>

#include "data/dataset.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/learning/evaluator.hpp"
#include "runtime/learning/gather_parameters.hpp"
#include "runtime/memory/parameters.hpp"
#include "runtime/transport/transport.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// The learning task of a rank, and its backend.
struct LearningPlace {
  Backend& backend;
  const Experiment& experiment;  ///< outlives the rank's shard
  LearningTask task;
  RankId rank{0};
  std::int64_t batch = 1;  ///< samples of a pass
};

/// The network that one rank trains in an experiment with `learning`: the whole network, or its shard of a
/// network that a group of ranks shares. The class is abstract because there is a subclass for each form of
/// model parallelism.
class LearningShard {
 public:
  virtual ~LearningShard() = default;

  /// The share of the mini-batches that the rank's worker, or its group, trains on.
  virtual Batches::Split split() const = 0;
  /// True if the shard has the first layer or the loss, and so needs data.
  virtual bool reads_data() const { return true; }
  /// The device that trains on the mini-batches, in order.
  virtual std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) = 0;
  /// All networks that have parameters of their own.
  virtual std::vector<Network*> networks() = 0;
  /// Writes this rank's part of the whole network's parameters into its networks.
  virtual void load_parameters(const Parameters& whole) = 0;

  /// True if this rank holds parameters of the replica that is evaluated (the first one).
  virtual bool holds_evaluated_parameters() const = 0;
  /// Gathers the whole network's parameters on rank 0. Collective over the ranks that hold evaluated
  /// parameters.
  /// @param transport  between these ranks
  virtual Parameters gather_parameters(Transport* transport) = 0;
};

std::unique_ptr<LearningShard> learning_shard(const LearningPlace& place);

}  // namespace stepcast
