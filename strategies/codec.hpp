#pragma once

#include <cstdint>

#include "models/compression.hpp"

namespace stepcast {

/// How elements of an array travel, where not as float32.
struct Codec {
  Compression kind = Compression::none;
  std::int64_t rows = 1;  ///< one_bit: elements of a column
  double density = 1;     ///< top_k: share of the elements that each sends
  int owners = 1;         ///< one_bit, fp16: each sums a share of the elements; top_k: everyone that sends
};

}  // namespace stepcast
