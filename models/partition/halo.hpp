#pragma once

#include <string>
#include <vector>

#include "models/partition/spatial_partition.hpp"

namespace stepcast {

/// Number of rows that a device needs from the neighbours before (above, left) and after it.
struct Halo {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

/// A window that slides along one dimension.
struct SlidingWindow {
  std::int64_t kernel = 1, stride = 1, pad_before = 0;
};

/// Rows of an input of `inputs` rows that the given outputs read: from the first row of the first window to
/// the last row of the last window, without padding. Output o reads rows o x stride - pad_before ... + kernel
/// - 1.
Rows rows_read(const SlidingWindow& slide, Rows outputs, std::int64_t inputs);

/// The outputs, out of `outputs`, that read any of these input rows. The gradient of the rows depends on the
/// gradients of these outputs.
Rows rows_reading(const SlidingWindow& slide, Rows inputs, std::int64_t outputs);

/// Halos of one layer along one dimension.
struct DimensionHalo {
  Halo forward;   ///< rows of the input; for a max pool, of all windows that its backward pass needs
  Halo backward;  ///< rows of the error signal of the output, for the backward-data pass
};

/// Halos of device `index` of `parts` along spatial dimension `dimension` (0 is height). They are empty for
/// layers without a window and for layers that are not maps.
DimensionHalo dimension_halo(const Layer& layer, std::size_t dimension, int parts, int index);

/// A message that a device receives from the neighbour before or after it along a dimension.
struct HaloMessage {
  std::size_t dimension = 0;
  bool from_before = true;
  double elements = 0;  ///< elements of one sample
};

/// Messages that one device receives for one layer. Dimensions are exchanged from the last to the first; each
/// message includes the halos of the dimensions exchanged before, so that corners are sent along.
struct LayerHalo {
  std::vector<HaloMessage> forward, backward;
};

/// Messages that one device receives, for each layer. Layers without a backward-data pass have no backward
/// messages; layers on whole samples have none at all.
std::vector<LayerHalo> device_halos(const Model& model, const SpatialPartition& partition, int device);

/// Share of the rows of a device that cannot be computed before its halos arrive; the maximum over devices.
struct BorderShare {
  double forward = 0;   ///< share of the outputs
  double backward = 0;  ///< share of the error signal of the input
};
BorderShare border_share(const Layer& layer, const Parts& parts);

/// Elements of all messages.
double elements_of(const std::vector<HaloMessage>& messages);

/// The reason why the model cannot be partitioned like this, in one line: a layer would leave a device
/// without rows, need rows from beyond the next neighbour, or has no height and width. Empty if it can be
/// partitioned.
std::string spatial_problem(const Model& model, const SpatialPartition& partition);

}  // namespace stepcast
