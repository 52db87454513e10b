#pragma once

#include <vector>

#include "models/model.hpp"

namespace stepcast {

/// Where a network is cut into stages: stage i has the layers [first[i], first[i + 1]).
using Stages = std::vector<int>;

/// The cut into `stages` runs of layers whose slowest run takes least; every stage has a layer.
/// @param seconds  of each layer, forward and backward
/// @throws std::invalid_argument if there are fewer layers than stages
Stages balanced_stages(const std::vector<double>& seconds, int stages);

/// Layers below a cut before layer `layer` whose outputs are read there or above (-1: the network's input),
/// in order.
std::vector<int> crossing_sources(const Model& model, int layer);

/// Elements of one sample that cross a cut before layer `layer`: outputs of layers below that are read there
/// or above, each once. Their error signals come back.
double crossing_elements(const Model& model, int layer);

/// The layers [first, last) as a network of its own, whose input is what crosses the cut before it.
Model stage_model(const Model& model, int first, int last);

}  // namespace stepcast
