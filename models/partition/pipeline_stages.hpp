#pragma once

#include <vector>

#include "models/network/model.hpp"

namespace stepcast {

/// First layers of the stages of a pipeline, and the number of layers at the end: stage i has the layers
/// [first[i], first[i + 1]).
using Stages = std::vector<int>;

/// Divides the layers into `stages` consecutive stages such that the slowest stage takes the least time.
/// Every stage has a layer.
/// @param seconds  forward and backward time of each layer
/// @throws std::invalid_argument if there are fewer layers than stages
Stages balanced_stages(const std::vector<double>& seconds, int stages);

/// The layers before which a pipeline may be cut, and the number of layers: stacks keep the blocks of
/// transformers whole; other networks are cut before any layer.
Stages divisible_at(const Model& model);

/// balanced_stages() with cuts only at divisible_at(), if that leaves each stage a layer.
Stages balanced_stages(const Model& model, const std::vector<double>& seconds, int stages);

/// Moves each boundary to where the least data cross it, as long as no stage takes more than `slack` times
/// what the slowest took before.
/// @param seconds  forward and backward time of each layer
Stages with_small_boundaries(const Model& model, const std::vector<double>& seconds, Stages stages,
                             double slack);

/// Layers before `layer` whose outputs `layer` or later layers read, in order; -1 is the network's input.
std::vector<int> boundary_sources(const Model& model, int layer);

/// Elements of one sample that cross a stage boundary before layer `layer`: each output of an earlier layer
/// that `layer` or later layers read, once. Their error signals cross the boundary backward.
double boundary_elements(const Model& model, int layer);

/// The layers [first, last) as a network. Its input is the data that crosses the stage boundary before it.
Model stage_model(const Model& model, int first, int last);

}  // namespace stepcast
