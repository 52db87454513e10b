#pragma once

#include <string>
#include <vector>

#include "models/network/model.hpp"

namespace stepcast {

/// Rows [first, last) along one dimension.
struct Rows {
  std::int64_t first = 0;
  std::int64_t last = 0;

  std::int64_t size() const { return last - first; }
};

/// Number of devices along each spatial dimension of a sample: {4, 1} are four strips of height, {2, 2}
/// quarters.
using Parts = std::vector<int>;

/// Whether a shape has channels and as many spatial dimensions as are divided.
bool is_map(const Shape& shape, const Parts& parts);

/// Number of devices that share a sample: the product of the parts.
int device_count(const Parts& parts);

/// Grid coordinates of a device. The last dimension varies fastest.
std::vector<int> grid_place(const Parts& parts, int device);

/// Part `index` of `rows` rows. If the rows do not divide evenly, the first parts have one row more.
Rows part_of(std::int64_t rows, int parts, int index);

/// Spatial partition of the samples of a group of devices.
///
/// In layers before `whole_from` each device works on its part of every sample. From there on each device has
/// whole samples, which are redistributed among the group.
struct SpatialPartition {
  Parts parts;
  std::size_t whole_from = 0;
  bool separate_border = false;  ///< kernels compute the border after the interior (`halo_overlap`)

  /// True if the layer works on parts of samples.
  bool splits(std::size_t layer) const { return layer < whole_from; }
};

/// The first layer that mixes all positions and therefore cannot be partitioned spatially: dense, recurrent,
/// attention and norm layers over features, softmax, and pools over the whole map. Element-wise layers, even
/// after a flattening, can be partitioned. Returns the number of layers if there is none.
std::size_t first_mixing_layer(const Model& model);

/// The network of the device with the largest part of a sample: the same layers and parameters, with the
/// shapes of that part. Layers on whole samples keep their shapes.
Model largest_spatial_part(const Model& model, const SpatialPartition& partition);

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
