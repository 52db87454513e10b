#pragma once

#include <memory>
#include <span>

#include "kernels/network/backend.hpp"
#include "kernels/network/network.hpp"
#include "models/partition/spatial_shard.hpp"
#include "runtime/devices/rank_device.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// Buffer of one exchange between ranks: the backend's kernels pack and unpack it, and the host sends and
/// receives it.
struct StagingBuffer {
  float* on_backend = nullptr;  ///< where kernels pack and unpack
  /// The host's memory for sending and receiving; equal to `on_backend` if the host can access that.
  std::span<float> on_host = {};
  DeviceMemory* device = nullptr;  ///< the backend's memory if the host cannot access it; else null
};

/// One staging buffer for exchanges of which each ends before the next begins.
class StagingBuffers {
 public:
  explicit StagingBuffers(Backend& backend) : backend_(backend) {}

  /// A buffer of at least `elements` floats. It replaces the buffer that was returned before.
  StagingBuffer of(std::size_t elements);

 private:
  Backend& backend_;
  std::size_t elements_ = 0;
  std::shared_ptr<float> on_backend_, on_host_;
};

/// One rank's shard of a network whose samples are partitioned over a group (spatial parallelism).
struct SpatialNetwork {
  std::unique_ptr<SpatialShard> part;
  std::unique_ptr<Network> network;
};

/// Options of the network of a shard: `options` with the shard, its batch, and how it is coupled to the other
/// shards.
NetworkOptions spatial_options(const SpatialShard& part, const Model& model, const NetworkSharing& sharing,
                               NetworkOptions options);

/// @param place  of the rank in its group
SpatialNetwork spatial_network(Backend& backend, const Model& model, const NetworkSharing& sharing, int place,
                               const NetworkOptions& options);

/// Device of a spatial shard: it runs the kernels on its part of every sample, and binds halo exchanges,
/// batch-norm statistics and the resharding to whole samples to the plan's collectives.
std::unique_ptr<RankDevice> spatial_device(const SpatialNetwork& shard, const Model& model,
                                           const NetworkSharing& sharing, int place,
                                           DeviceLearning learning = {});

}  // namespace stepcast
