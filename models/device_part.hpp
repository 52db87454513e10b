#pragma once

#include <vector>

#include "models/halo.hpp"

namespace stepcast {

/// One layer of a cut network on one device, along one spatial dimension. Rows are those of the whole map.
struct CutRows {
  Rows in, out;    ///< its own
  Rows read;       ///< of the input, read by its own outputs; max pools: by `reading`
  Rows reading;    ///< of the output, that read its own inputs; max pools: its own outputs as well
  Rows read_back;  ///< of the input, read by those
  Halo pad;        ///< rows beyond the map that its own outputs read,
  Halo pad_in;     ///< by which the windows of `reading` reach beyond `in`; `before` is negative where they
                   ///< begin after it,
  Halo pad_back;   ///< and beyond `read_back`
};

/// One entry a spatial dimension; empty for layers that are no maps or not cut.
using LayerCut = std::vector<CutRows>;

LayerCut layer_cut(const Layer& layer, const SampleCut& cut, const std::vector<int>& place);

/// Whether any device of the group reads rows of a neighbour.
bool crosses_cut(const Layer& layer, const SampleCut& cut);

bool within(const Rows& inner, const Rows& outer);

/// Where no rows of neighbours are read: rows beyond its own, which are beyond the map then.
Halo pad_of_own(const CutRows& rows);

/// What one device computes of a cut sample: a network of its own, whose windows are padded only where the
/// map ends, and where its rows lie.
struct DevicePart {
  Model model;
  std::vector<LayerCut> cuts;  ///< of layers whose windows cross the cut anywhere in the group; others empty
  std::vector<double> share;   ///< of each layer's elements of all samples of the group
};

DevicePart device_part(const Model& model, const SampleCut& cut, int device);

/// The box of the map that device `target` receives along a dimension: rows of the layer's input (or of its
/// output's error signal), with the halos of the dimensions that were exchanged before.
std::vector<Rows> halo_box(const Model& model, const SampleCut& cut, std::size_t layer, bool errors,
                           int target, std::size_t dimension, bool from_before);

}  // namespace stepcast
