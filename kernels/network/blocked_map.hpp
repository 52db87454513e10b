#pragma once

#include <cstdint>
#include <vector>

#include "models/partition/spatial_partition.hpp"

namespace stepcast {

/// A batch of maps in memory with channels in blocks. Element (sample, channel, position) lies at
/// sample x sample_stride + channel / block x block_stride + channel % block + position . strides.
struct MapView {
  float* data = nullptr;
  std::int64_t samples = 0, channels = 0;
  std::int64_t sample_stride = 0, block = 1, block_stride = 0;
  std::vector<std::int64_t> strides;  ///< stride of each spatial dimension
  std::vector<Rows> rows;             ///< rows of the whole map that this memory holds, for each dimension
};

/// Copies a box of rows into a message: [sample][position][channel]. Positions that `own` does not hold are
/// taken from `extended`, which must hold them.
void pack(const std::vector<Rows>& box, const MapView& own, const MapView& extended, float* message);

/// Copies a message into a box of rows; positions that `extended` does not hold are left out.
void unpack(const std::vector<Rows>& box, const MapView& extended, const float* message);

}  // namespace stepcast
