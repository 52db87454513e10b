#pragma once

#include <cstdint>

#include "core/units.hpp"
#include "models/layer_times/compression_times.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Compression of the elements of a message.
struct Codec {
  Compression kind = Compression::none;
  std::int64_t rows = 1;  ///< one_bit: elements of a column
  double density = 1;     ///< top_k: share of the elements that each worker sends
  int owners = 1;         ///< one_bit, fp16: workers that each sum a share; top_k: workers that send
};

/// Arrays of a worker or server. All but the last three have the length of the model's parameters.
enum class Array {
  none,
  gradients,
  parameters,
  update,  ///< update that goes to a server or came from a worker
  center,  ///< parameters that came last from a server, or with which a block started
  model,   ///< state of a strategy's arithmetic: earlier parameters
  change,  ///< state of a strategy's arithmetic: velocity of the parameters
  statistics,
  activations,
  errors  ///< error signals of activations
};

/// Part of an array that a collective or a message carries. A simulation uses `size`; a real run moves the
/// elements.
struct Buffer {
  Array array = Array::none;
  Slice elements;
  Bytes size;  ///< size of the message
  Codec codec = {};
};

/// Identifies a payload that travels apart from its message, from device to device. Only real runs use it.
struct PayloadId {
  std::int64_t number = 0;  ///< unique in the run; 0: no payload
  std::int64_t floats = 0;
};

/// A message from one role to another.
struct Message {
  int from = -1;  ///< role of the sender; set by the runtime
  int tag = 0;    ///< a receive matches messages with its tag
  Buffer buffer;
  int parts = 1;     ///< number of messages, sent one after the other, that carry it
  double value = 0;  ///< number in the message, such as a version or a count
  PayloadId payload = {};
};

}  // namespace stepcast
