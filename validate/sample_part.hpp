#pragma once

#include <vector>

#include "models/cut.hpp"

namespace stepcast {

/// Elements that are contiguous in a device's part of one sample's map, and in the whole; both row-major.
struct SampleRun {
  std::int64_t in_part = 0, in_whole = 0, length = 0;
};

/// All of them, in the order of the part.
std::vector<SampleRun> runs_of_part(const Shape& map, const SampleCut& cut, int device);

/// The map whose elements layer `source` has (-1: the input), before any flattening: a flattened one keeps
/// the order that it had.
Shape map_behind(const Model& model, int source, const SampleCut& cut);

}  // namespace stepcast
