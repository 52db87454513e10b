#pragma once

#include <functional>
#include <span>

#include "strategies/message.hpp"

namespace stepcast {

class CompressedGradient;

/// The arrays of one worker or server in a world that has memory: float32, as they lie there, padding
/// included. When a run begins, `center` and `model` are equal to the parameters, all others are zeros.
class Arrays {
 public:
  virtual ~Arrays() = default;

  virtual std::span<float> of(Array array) = 0;
  /// What holds these elements of the model.
  virtual std::span<float> of(Array array, const Slice& elements) = 0;
  /// One step of the optimizer over these elements, along `gradient`, a sum of so many gradients.
  virtual void descend(Array gradient, const Slice& elements, int summed) = 0;
  /// What these elements are compressed into, and what is owed of them: nothing when a run begins.
  virtual CompressedGradient& compressed(const Codec& codec, const Slice& elements) = 0;
  /// Of the optimizer's next step.
  virtual double learning_rate() const = 0;
};

/// What a strategy does to arrays.
using Arithmetic = std::function<void(Arrays&)>;

}  // namespace stepcast
