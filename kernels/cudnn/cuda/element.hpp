#pragma once

#include <cstddef>

namespace stepcast::cudnn {

/// Number format in which activations, their gradients and low-precision copies of weights are stored. Sums
/// are always fp32.
enum class Element { f32, f16, bf16 };

constexpr std::size_t bytes_of(Element element) {
  return element == Element::f32 ? 4 : 2;
}

}  // namespace stepcast::cudnn
