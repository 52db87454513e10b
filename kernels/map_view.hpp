#pragma once

#include <cstdint>
#include <vector>

#include "models/cut.hpp"

namespace stepcast {

/// A batch of maps in memory, channels in blocks: element (sample, channel, position) lies at
/// sample x sample_stride + channel / block x block_stride + channel % block + position . strides.
struct MapView {
  float* data = nullptr;
  std::int64_t samples = 0, channels = 0;
  std::int64_t sample_stride = 0, block = 1, block_stride = 0;
  std::vector<std::int64_t> strides;  ///< of each spatial dimension
  std::vector<Rows> rows;             ///< of the whole map, that it holds along each dimension
};

/// Copies a box of rows to and from a message: [sample][position][channel].
/// `pack` takes positions that `own` holds from there and others from `extended`, which must hold them;
/// `unpack` leaves out positions that `extended` does not hold.
void pack(const std::vector<Rows>& box, const MapView& own, const MapView& extended, float* message);
void unpack(const std::vector<Rows>& box, const MapView& extended, const float* message);

}  // namespace stepcast
