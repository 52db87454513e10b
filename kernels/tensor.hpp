#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "models/layer.hpp"

namespace stepcast {

/// {batch, sample...}
inline Shape batched(std::int64_t batch, const Shape& sample) {
  Shape shape{batch};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

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
  /// The same to and from memory that holds as many values.
  virtual void copy_to(float* values) const {
    const std::vector<float> all = read();
    std::copy(all.begin(), all.end(), values);
  }
  virtual void copy_from(const float* values) { write({values, values + elements()}); }

  std::size_t elements() const {
    std::size_t product = 1;
    for (const std::int64_t size : shape()) product *= static_cast<std::size_t>(size);
    return product;
  }
};

}  // namespace stepcast
