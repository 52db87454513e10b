#pragma once

#include <cstddef>

namespace stepcast::cudnn {

/// How an activation, a gradient or a copy of weights is stored. Sums are always fp32.
enum class Element { f32, f16, bf16 };

constexpr std::size_t bytes_of(Element element) {
  return element == Element::f32 ? 4 : 2;
}

}  // namespace stepcast::cudnn
