#pragma once

#include "core/keys.hpp"
#include "core/yaml.hpp"
#include "models/layer_times/trace.hpp"
#include "models/partition/pipeline_stages.hpp"
#include "strategies/mesh/mesh.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// Keys of the stages of a pipeline: how the layers are divided, and the order of their passes.
const Keys& stage_keys();
/// Reads stage_keys() and `recompute`. @param micro_batches  name of the key that gives their number
void read_stages(const YamlMap& map, const char* micro_batches, MeshOptions& options);

/// First layers of all runs of layers (one for each chunk of each stage): the layers that `split_points`
/// names, those of equal numbers of blocks, or those that make the slowest run fastest; with recomputed
/// stages, which keep what crosses their boundaries, nearly so.
/// @param stages  the key that is wrong if there are too few layers
Stages first_layers_of_runs(const YamlMap& map, const YamlValue& stages, const Setting& setting,
                            const Trace& times, const MeshOptions& options);

}  // namespace stepcast
