#pragma once

#include <vector>

#include "models/layer.hpp"

namespace stepcast {

/// A batch of activations or gradients in the layout and memory that a backend chose; fp32.
class Tensor {
 public:
  virtual ~Tensor() = default;

  /// {batch, shape of a sample...}
  virtual const Shape& shape() const = 0;
  /// Values in row-major order of `shape()`, whatever the layout.
  virtual std::vector<float> read() const = 0;
  /// @throws std::invalid_argument if the length does not match the shape
  virtual void write(const std::vector<float>& values) = 0;
};

}  // namespace stepcast
