#pragma once

#include "models/cut.hpp"

namespace stepcast {

/// Rows that a device needs from the neighbours before (above, left) and after it.
struct Halo {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

/// A window that slides along one dimension.
struct Slide {
  std::int64_t kernel = 1, stride = 1, pad_before = 0;
};

/// Rows of an input of `inputs` rows that the outputs read: first row of the first window to last row of the
/// last one, padding left out. Output o reads rows o x stride - pad_before ... + kernel - 1.
Rows rows_read(const Slide& slide, Rows outputs, std::int64_t inputs);

/// Outputs, of `outputs` in all, that read any of these input rows: whose gradients the gradient of the rows
/// needs.
Rows rows_reading(const Slide& slide, Rows inputs, std::int64_t outputs);

/// Of one layer along one dimension.
struct DimensionHalo {
  Halo forward;   ///< rows of the input; a max pool's backward pass needs those of all windows it works out
  Halo backward;  ///< rows of the error signal of the output, for backward-data
};

/// What device `index` of `parts` needs along spatial dimension `dimension` (0 is height).
/// Layers without a window, and those that are no maps, need nothing.
DimensionHalo dimension_halo(const Layer& layer, std::size_t dimension, int parts, int index);

/// A message that a device receives: from the neighbour before or after it along a dimension.
struct HaloMessage {
  std::size_t dimension = 0;
  bool from_before = true;
  double elements = 0;  ///< of one sample
};

/// What one device receives for one layer. Dimensions are exchanged from the last to the first, each with the
/// halos of those before it, so that corners travel along.
struct LayerHalo {
  std::vector<HaloMessage> forward, backward;
};

/// One entry a layer; layers without backward-data pass (`models/graph.hpp`) and whole layers have none
/// there.
std::vector<LayerHalo> device_halos(const Model& model, const SampleCut& cut, int device);

/// Share of a device's own rows that cannot be computed before halos arrive, the most of any device.
struct BorderShare {
  double forward = 0;   ///< of the outputs
  double backward = 0;  ///< of the input's error signal
};
BorderShare border_share(const Layer& layer, const Parts& parts);

double elements_of(const std::vector<HaloMessage>& messages);

}  // namespace stepcast
