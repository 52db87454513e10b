#pragma once

#include "strategies/options/strategy.hpp"

namespace stepcast {

// Strategies in which groups of devices share a replica. Each is a way to partition the network
// (models/partition) with the program `sharded` (model_parallel/sharded_step.hpp).

Strategy spatial_strategy();
Strategy filter_parallel_strategy();
Strategy tensor_strategy();
Strategy mixture_of_experts_strategy();
Strategy model_parallel_strategy();

/// How ranks share the network under `kind: spatial` and a replica of `batch` samples. Layer times need not
/// be known.
/// @param workers  all workers
NetworkSharing spatial_sharing(const YamlValue& value, const Model& model, int workers, std::int64_t batch);

/// How ranks share the network under `kind: tensor` and a replica of `batch` samples.
NetworkSharing tensor_sharing(const YamlValue& value, const Model& model, std::int64_t batch);

/// A mini-batch of one replica that is partitioned over machines, for strategies whose workers are such
/// replicas.
struct PartitionedStep {
  Seconds
      compute;     ///< time of the machine with the largest part: forward, backward, update, packing of halos
  int rounds = 0;  ///< rounds of messages, one after the other
  Bytes bytes;     ///< bytes that the busiest machine receives in them
};

/// A step takes compute + rounds x latency + bytes / bandwidth on an unshared network: one message to each
/// side for a halo, machines - 1 rounds for an all-gather or a reduce-scatter of activations.
/// @throws std::invalid_argument if the network cannot be partitioned (partition_problem)
PartitionedStep partitioned_step(const Setting& setting, int machines, std::int64_t batch);

}  // namespace stepcast
