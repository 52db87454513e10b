#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "kernels/network/network.hpp"
#include "models/partition/spatial_shard.hpp"
#include "models/partition/tensor_shard.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/devices/spatial_device.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// One rank's shard of a network whose layers are partitioned over a group (tensor parallelism).
struct TensorParallelNetwork {
  std::shared_ptr<SharedPart> part;
  std::shared_ptr<Network> network;
  int place = 0;                  ///< of the rank in its group
  std::int64_t samples = 1;       ///< of a micro-batch
  SpatialPartition spatial = {};  ///< of the samples, if ranks share the positions of the first layers
};

/// True if ranks have parts of every layer (tensor, filter and model parallelism).
bool has_parts_of_layers(const ModelPartition& partition);

/// The shard of the layers that the rank at `place` of a group has.
SharedPart tensor_shard(const Model& model, const ModelPartition& partition, int place);
/// Options of the network of a shard: `options` with the shard and its batch.
NetworkOptions tensor_parallel_options(const SharedPart& part, const ModelPartition& partition,
                                       NetworkOptions options);

TensorParallelNetwork tensor_parallel_network(Backend& backend, const Model& model,
                                              const ModelPartition& partition, int place,
                                              const NetworkOptions& options);

/// Device of a tensor-parallel shard: it runs the kernels of its part of every layer, and binds the sums of
/// outputs and of error signals to the plan's collectives.
std::unique_ptr<RankDevice> tensor_parallel_device(const TensorParallelNetwork& shard,
                                                   DeviceLearning learning = {});

/// The machine of a replica whose part of the parameters a rank has: a worker, or the server of that part
/// (ModelPartition::Form::machines).
int machine_of(const Plan& plan, RankId rank);

/// Device of such a rank. A worker computes its part of every layer. Both have the parameters of that part,
/// and number them as the plan does: first all those of machine 0.
/// @param part  of this machine; it outlives the device
std::unique_ptr<RankDevice> machine_device(const TensorParallelNetwork& part, const Plan& plan, RankId rank,
                                           DeviceLearning learning = {});

/// One rank's shard of a network that is partitioned over a group by samples (spatial) or by layers (tensor),
/// and the options of its network. At most one of `spatial` and `tensor` is set.
struct RankShard {
  std::shared_ptr<SpatialShard> spatial;  ///< null: whole samples
  std::shared_ptr<SharedPart> tensor;     ///< null: whole layers
  NetworkOptions options = {};
  int place = 0;                    ///< of the rank among those that share its layers
  SpatialPartition partition = {};  ///< with `tensor`: of the samples, if ranks share positions

  /// True if the rank has the whole network.
  bool is_whole() const { return spatial == nullptr && tensor == nullptr; }
  /// The model of the shard; only if it is not whole.
  const Model& model() const { return spatial ? spatial->model : tensor->model; }
};

/// A shard and its network after the captures.
struct CapturedShard {
  RankShard shard;
  std::shared_ptr<Network> network;
};

using CapturedShards = std::map<std::filesystem::path, CapturedShard>;  ///< by the files of their traces

/// @param partition  spatial or tensor partition
RankShard rank_shard(const Model& model, const ModelPartition& partition, RankId rank);

/// Makes the devices of a rank's spatial and tensor-parallel shards, for runs that are timed on synthetic
/// data, and keeps their networks.
class ShardDevices {
 public:
  /// @param captured  networks that go on to be used, in the same memory
  ShardDevices(Backend& backend, RankId rank, CapturedShards&& captured = {});

  /// The device of the rank's shard; null if the rank has no spatial or tensor-parallel shard in this
  /// experiment.
  /// @param trace  file of the shard's trace: points with the same trace train one network
  std::unique_ptr<RankDevice> device(const Experiment& experiment, const std::filesystem::path& trace);

 private:
  std::unique_ptr<RankDevice> make_spatial_device(const Experiment& experiment,
                                                  const std::filesystem::path& trace);
  std::unique_ptr<RankDevice> make_machine_device(const Experiment& experiment,
                                                  const std::filesystem::path& trace);
  std::unique_ptr<RankDevice> make_tensor_parallel_device(const Experiment& experiment,
                                                          const std::filesystem::path& trace);

  Backend& backend_;
  RankId rank_;
  std::map<std::filesystem::path, SpatialNetwork> spatial_;
  std::map<std::filesystem::path, TensorParallelNetwork> tensor_, servers_;
};

}  // namespace stepcast
