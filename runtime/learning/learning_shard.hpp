#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "kernels/network/backend.hpp"
#include "kernels/network/network.hpp"
#include "models/network/model.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/learning/joint_network.hpp"
#include "runtime/memory/parameters.hpp"
#include "runtime/transport/transport.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// Gathers the full arrays of tensor-parallel layers on rank 0. Collective over the first group; the other
/// ranks get an empty list. @param own  parameters of this rank's shard
Parameters gather_tensor_parallel_parameters(Transport& transport, const Model& model,
                                             const ModelPartition& partition, const Parameters& own);

/// Gathers the full arrays of all pipeline stages of the first replica on rank 0; only its ranks call it.
/// @param own  parameters of this rank's stage
Parameters gather_pipeline_parameters(Transport& transport, const Model& model, const Plan& plan,
                                      const Parameters& own);

/// The tensor-parallel shard of the whole network's parameters that the rank at `place` has.
Parameters shard_of_parameters(const Parameters& whole, const Model& model, const ModelPartition& partition,
                               int place);

/// Writes training data into tensors. On a device whose memory the host cannot access, the data go through a
/// pinned staging buffer and are copied into the tensor as work of the device, so the host does not wait for
/// running kernels.
class BatchWriter {
 public:
  explicit BatchWriter(Backend& backend) : backend_(backend) {}

  /// @param values  in row-major order
  /// @param to      outlives this object
  void write(const std::vector<float>& values, Tensor& to);
  /// Writes inputs, and targets if the network has the loss layer.
  void write(const Batches::Batch& batch, std::size_t loss_layer, Network& network);

 private:
  struct StagingPair {
    std::shared_ptr<float> host, device;
    DeviceMemory::Event read;  ///< when the device has read the data that were staged last
  };

  Backend& backend_;
  std::map<const Tensor*, StagingPair> staging_;
};

/// The loss layer of a model, and the form of the samples that it learns from.
struct LearningTask {
  std::size_t loss_layer = 0;
  SampleForm form;
  std::optional<std::size_t> discriminator =
      {};  ///< its first layer, if the layers before it generate samples
};

/// @param discriminator  `learning.discriminator`: the name of its first layer
/// @throws InputError for a model without a loss, or with several, and for one that is no generator and
/// discriminator
LearningTask learning_task(const Model& model, const std::optional<std::string>& discriminator = {});

/// Quality of parameters on test data, which no rank trains on.
struct Score {
  double loss = 0;      ///< of a generator: the energy coefficient between its samples and real ones
  double accuracy = 0;  ///< share of correctly predicted classes; NaN if the targets are not classes
  std::optional<double> low_energy_loss = {};  ///< of a generator: low_energy_coefficient
};

/// Evaluates parameters of a model, without dropout; batch norm uses the statistics of a test batch.
class Evaluator {
 public:
  /// @param samples  how many samples of `data` are used, from the first on
  Evaluator(Backend& backend, const Model& model, const LearningTask& task, const Dataset& data,
            std::int64_t samples);

  /// @param on_progress  called after every batch
  Score score(const Parameters& parameters, const std::function<void()>& on_progress);

 private:
  void run_forward();
  double accuracy(const Batches::Batch& batch);
  Score generator_score(const std::function<void()>& on_progress);

  LearningTask task_;
  std::int64_t batches_;
  Network network_;
  Batches data_;
};

/// The learning task of a rank, and its backend.
struct LearningPlace {
  Backend& backend;
  const Experiment& experiment;  ///< outlives the rank's shard
  LearningTask task;
  RankId rank{0};
  std::int64_t batch = 1;          ///< samples of a pass
  JointNetworks* joint = nullptr;  ///< networks of replicas whose machines are ranks of this process
};

/// Options of a network that trains on the mini-batches of one replica.
NetworkOptions network_options(const LearningPlace& place, int replica);

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

/// The shard of a rank that has a network of its own.
std::unique_ptr<LearningShard> learning_shard(const LearningPlace& place);

}  // namespace stepcast
