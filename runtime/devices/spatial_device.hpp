#pragma once

#include <memory>
#include <vector>

#include "kernels/network/backend.hpp"
#include "kernels/network/network.hpp"
#include "models/network/model.hpp"
#include "models/partition/spatial_partition.hpp"
#include "models/partition/spatial_shard.hpp"
#include "runtime/devices/halo_exchanges.hpp"
#include "runtime/devices/rank_device.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// Elements that are contiguous both in a device's part of one sample's map and in the whole map, row-major.
struct SampleRun {
  std::int64_t in_part = 0, in_whole = 0, length = 0;
};

/// All runs of a device's part, in the order of the part.
std::vector<SampleRun> runs_of_shard(const Shape& map, const SpatialPartition& partition, int device);

/// Shape of the map that the output of layer `source` (-1: the input) had before any flattening, which keeps
/// the order of the elements.
Shape unflattened_shape(const Model& model, int source, const SpatialPartition& partition);

/// True if some layer of the network changes from parts of all samples to whole samples.
bool reshards_to_batch(const ModelPartition& partition, const Model& model);

/// Reshards activations from parts of all samples of a group to whole samples of each rank, and error signals
/// back, by an all-to-all whose block (s, t) of the buffer goes from rank s to rank t. All buffers are memory
/// of the backend.
class SpatialToBatchResharding {
 public:
  SpatialToBatchResharding(Network& network, const Model& model, const ModelPartition& partition, int place);

  /// Sets the hooks of a collective that pack before the first phase and unpack after the last.
  /// @param memory  buffer of the all-to-all, of the backend
  void add_hooks(CollectiveBinding& binding, bool forward, float* memory);
  /// Elements of the buffer of the all-to-all.
  std::size_t buffer_elements() const { return block_elements_ * static_cast<std::size_t>(ways_ * ways_); }

 private:
  /// Copy from part `device` of this rank's samples, row-major, to its place in the whole samples, and back.
  BoxMove scatter(int device) const;
  BoxMove gather(int device) const;

  float* block(float* memory, int from, int to) const;
  void pack_parts(float* memory);
  void unpack_samples(float* memory);
  void pack_errors(float* memory);
  void unpack_errors(float* memory);

  Network& network_;
  Backend& backend_;
  SpatialPartition partition_;
  int place_, ways_, source_ = -1;
  std::int64_t samples_ = 0;         ///< of each rank
  Shape map_;                        ///< of one sample, before any flattening
  std::size_t sample_elements_ = 0;  ///< elements of one rank's samples
  std::size_t block_elements_ = 0;   ///< elements of one part of them
  std::shared_ptr<float> blocks_, samples_buffer_, scratch_;
};

/// One rank's shard of a network whose samples are partitioned over a group (spatial parallelism).
struct SpatialNetwork {
  std::shared_ptr<SpatialShard> part;
  std::shared_ptr<Network> network;
};

/// Options of the network of a shard: `options` with the shard, its batch, and how it is coupled to the other
/// shards.
NetworkOptions spatial_options(const SpatialShard& part, const Model& model, const ModelPartition& partition,
                               NetworkOptions options);

/// @param place  of the rank in its group
SpatialNetwork spatial_network(Backend& backend, const Model& model, const ModelPartition& partition,
                               int place, const NetworkOptions& options);

/// Device of a spatial shard: it runs the kernels on its part of every sample, and binds halo exchanges,
/// batch-norm statistics and the resharding to whole samples to the plan's collectives.
std::unique_ptr<RankDevice> spatial_device(const SpatialNetwork& shard, const Model& model,
                                           const ModelPartition& partition, int place,
                                           DeviceLearning learning = {});

}  // namespace stepcast
