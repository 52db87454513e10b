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

}  // namespace stepcast
