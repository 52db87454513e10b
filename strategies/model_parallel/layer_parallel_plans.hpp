#pragma once

#include "strategies/options/strategy.hpp"

namespace stepcast {

// Strategies in which groups of devices share a replica. Each is a way to partition the network
// (models/partition) with the program `sharded` (model_parallel/layer_segments.hpp).

Strategy spatial_strategy();
Strategy filter_parallel_strategy();
Strategy tensor_strategy();
Strategy mixture_of_experts_strategy();
Strategy model_parallel_strategy();

/// The division of the network among ranks under `kind: spatial` and a replica of `batch` samples. Layer
/// times need not be known.
/// @param workers  all workers
ModelPartition spatial_sharing(const YamlValue& value, const Model& model, int workers, std::int64_t batch);

/// The division of the network among ranks under `kind: tensor` and a replica of `batch` samples.
ModelPartition tensor_sharing(const YamlValue& value, const Model& model, std::int64_t batch);

}  // namespace stepcast
