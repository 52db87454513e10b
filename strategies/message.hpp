#pragma once

#include <cstdint>

#include "core/units.hpp"
#include "strategies/codec.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Arrays that a worker (or server) has; all but the last three are as long as the model's parameters.
enum class Array {
  none,
  gradients,
  parameters,
  update,  ///< what goes to a server, or has come from a worker
  center,  ///< parameters that came last from a server, or that a block started from
  model,   ///< what arithmetic keeps: parameters of before
  change,  ///< what arithmetic keeps: how they move
  statistics,
  activations,
  errors  ///< error signals of activations
};

/// A stretch of an array, which a collective or a message carries. The simulated world counts `size`, the
/// real one moves the elements.
struct Buffer {
  Array array = Array::none;
  Slice elements;
  Bytes size;  ///< on the wire
  Codec codec = {};
};

/// What a payload travels in apart from its message: from device to device, in the real world alone.
struct Parcel {
  std::int64_t number = 0;  ///< of the run, no two are equal; 0: there is none
  std::int64_t floats = 0;
};

/// What one role sends to another.
struct Message {
  int from = -1;  ///< role of the sender; filled in by the world
  int tag = 0;    ///< what it is about; a receive names the tag it waits for
  Buffer buffer;
  int parts = 1;     ///< sent as so many messages one after the other, an array each
  double value = 0;  ///< a number that goes with it: a version, a count
  Parcel parcel = {};
};

}  // namespace stepcast
