#pragma once

#include "strategies/strategy.hpp"

namespace stepcast {

// Strategies in which groups of devices share a replica; each is a way to share the model
// (models/shard.hpp, models/cut.hpp) and the program `sharded`.

/// `strategy: {kind: spatial}`: every sample's height and width over the devices of a group.
Plan read_spatial(const YamlValue& value, const Setting& setting);

/// What such a strategy cuts, known before its layer times are: for a replica of `batch` samples.
/// @param workers  in all
NetworkSharing spatial_sharing(const YamlValue& value, const Model& model, int workers, std::int64_t batch);

/// `strategy: {kind: filter_parallel}`: every layer's filters over the devices of a group.
Plan read_filter_parallel(const YamlValue& value, const Setting& setting);

/// `strategy: {kind: tensor}`: transformer blocks over the devices of a group.
Plan read_tensor(const YamlValue& value, const Setting& setting);

/// What such a strategy shares, as spatial_sharing does.
NetworkSharing tensor_sharing(const YamlValue& value, const Model& model, std::int64_t batch);

/// `strategy: {kind: mixture_of_experts}`: data parallelism with experts dealt out over the devices of a
/// group.
Plan read_mixture_of_experts(const YamlValue& value, const Setting& setting);

/// `strategy: {kind: model_parallel}`: a network cut over machines as DistBelief does it.
Plan read_model_parallel(const YamlValue& value, const Setting& setting);

/// One replica of a network cut over machines, for strategies whose workers are such replicas.
struct PartitionedStep {
  Seconds compute;  ///< of the machine with the largest part: forward, backward, update, packing of halos
  int rounds = 0;   ///< of messages, one after the other
  Bytes bytes;      ///< that the busiest machine receives in them
};

/// A step takes compute + rounds x latency + bytes / bandwidth on a network that it has to itself: a message
/// to each side for a halo, machines - 1 rounds for a gather or a reduce-scatter of activations.
/// @throws std::invalid_argument if the network cannot be cut so (partition_problem)
PartitionedStep partitioned_step(const Setting& setting, int machines, std::int64_t batch);

}  // namespace stepcast
