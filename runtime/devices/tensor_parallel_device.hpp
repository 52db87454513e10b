#pragma once

#include <memory>

#include "kernels/network/network.hpp"
#include "models/partition/tensor_shard.hpp"
#include "runtime/devices/rank_device.hpp"

namespace stepcast {

/// One rank's shard of a network whose layers are partitioned over a group (tensor parallelism).
struct TensorParallelNetwork {
  std::unique_ptr<SharedPart> part;
  std::unique_ptr<Network> network;
};

/// The shard of the layers that the rank at `place` of a group has.
SharedPart tensor_shard(const Model& model, const NetworkSharing& sharing, int place);
/// Options of the network of a shard: `options` with the shard and its batch.
NetworkOptions tensor_parallel_options(const SharedPart& part, const NetworkSharing& sharing,
                                       NetworkOptions options);

TensorParallelNetwork tensor_parallel_network(Backend& backend, const Model& model,
                                              const NetworkSharing& sharing, int place,
                                              const NetworkOptions& options);

/// Device of a tensor-parallel shard: it runs the kernels of its part of every layer, and binds the sums of
/// outputs and of error signals to the plan's collectives.
std::unique_ptr<RankDevice> tensor_parallel_device(const TensorParallelNetwork& shard,
                                                   DeviceLearning learning = {});

}  // namespace stepcast
