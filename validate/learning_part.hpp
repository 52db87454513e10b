#pragma once

#include <memory>
#include <vector>

#include "data/batches.hpp"
#include "scenarios/experiment.hpp"
#include "validate/batch_writer.hpp"
#include "validate/checkpoint.hpp"
#include "validate/rank_device.hpp"
#include "validate/sample_form.hpp"
#include "validate/transport.hpp"

namespace stepcast {

/// Where a rank learns.
struct LearningPlace {
  Backend& backend;
  const Experiment& experiment;  ///< it outlives the rank's part
  LearningTask task;
  int rank = 0;
  std::int64_t batch = 1;  ///< samples of a pass
};

/// What one rank of an experiment with `learning` has of the network: all of it, or its part of what a group
/// of ranks shares. An abstract class because groups share a network in several ways.
class LearningPart {
 public:
  virtual ~LearningPart() = default;

  /// Which mini-batches its worker, or its group, takes.
  virtual Batches::Split split() const = 0;
  /// Whether it has the first layer or the loss.
  virtual bool reads_data() const { return true; }
  /// What computes on mini-batches, one after the other.
  virtual std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) = 0;
  /// All that have parameters of their own.
  virtual std::vector<Network*> networks() = 0;
  /// Takes its own of the whole network's parameters.
  virtual void write(const Parameters& whole) = 0;

  /// Whether it has some of the parameters whose worth is told.
  virtual bool tells() const = 0;
  /// The whole network's parameters on rank 0; all ranks that tell call it at the same time.
  /// @param transport  between them
  virtual Parameters whole(Transport* transport) = 0;
};

std::unique_ptr<LearningPart> learning_part(const LearningPlace& place);

/// Of ranks with a stage, and with a part of every sample.
std::unique_ptr<LearningPart> learning_stage(const LearningPlace& place);
std::unique_ptr<LearningPart> learning_cut(const LearningPlace& place);

/// Number of the group that has a rank, of groups of so many; ranks beyond the workers count to the last.
int group_of(const Experiment& experiment, int rank, int group_size);
/// Inputs, and targets where the network has the loss.
void write_batch(const Batches::Batch& batch, std::size_t loss_layer, Network& network, BatchWriter& writer);

}  // namespace stepcast
