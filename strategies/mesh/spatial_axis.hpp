#pragma once

#include <optional>

#include "strategies/mesh/mesh.hpp"

namespace stepcast {

/// `whole_from` and `batch_norm`, of devices that divide the positions of each sample.
const Keys& position_keys();

/// Reads them. @param split  `4`: strips of the first spatial dimension; `[2, 2]`: devices along each; none:
/// samples are not divided
void read_positions(const YamlMap& map, const std::optional<YamlValue>& split, const Model& model,
                    MeshOptions& options);

/// Gives the part the shapes of a device's positions. @throws InputError at `where` if that cannot be
void divide_positions(const Model& model, const MeshOptions& options, const YamlValue& where,
                      ShardedModel& sharded);

/// Samples that a device has of each layer: its part of all samples of the group, or whole ones.
void divide_samples(const MeshOptions& options, GroupPlan& groups);

/// Adds the exchanges of these layers: halos, the all-to-all that turns parts of all samples into whole
/// samples of each device, and the one back for error signals; sums of batch-norm statistics.
void add_position_exchanges(const Setting& setting, const MeshOptions& options, LayerRange layers,
                            GroupPlan& groups);

/// Ranks whose samples batch-norm statistics cover.
int statistics_over(const MeshOptions& options);

}  // namespace stepcast
