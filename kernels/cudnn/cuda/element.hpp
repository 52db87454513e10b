#pragma once

#include <cstddef>

namespace stepcast::cudnn {

/// Comments of the kernels say which bytes they move: of n elements, e bytes each, every array that does not
/// fit into a cache as often as it is read or written. Divided by the bandwidth of the GPU's memory that is
/// the floor of the kernel's time.

/// Number format in which activations, their gradients and low-precision copies of weights are stored. Sums
/// are always fp32.
enum class Element { f32, f16, bf16 };

constexpr std::size_t bytes_of(Element element) {
  return element == Element::f32 ? 4 : 2;
}

}  // namespace stepcast::cudnn
