#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/cudnn/element.hpp"

/// Kernels that move elements (moves.cu). All are started on a stream and return at once.
namespace stepcast::cudnn {

constexpr int kMoveDims = 5;

/// A box of elements, each side with its own strides [elements]: permutations, pads, crops, halos and
/// conversions.
struct Move {
  std::array<std::int64_t, kMoveDims> size{1, 1, 1, 1, 1}, from_stride{}, to_stride{};
  std::int64_t from_offset = 0, to_offset = 0;
  Element from_element = Element::f32, to_element = Element::f32;
};
void move_elements(const Move& move, const void* from, void* to, cudaStream_t stream);

/// to[i] = from[i].
void convert(const void* from, Element from_element, void* to, Element to_element, std::size_t elements,
             cudaStream_t stream);

/// `count` elements from one place to another.
struct Piece {
  std::int64_t from, to, count;
};
/// `pieces` is memory of the device; `longest` the largest count.
struct Pieces {
  const Piece* pieces = nullptr;
  int count = 0;
  std::int64_t longest = 0;
};
void move_pieces(const Pieces& pieces, const void* from, Element from_element, void* to, Element to_element,
                 cudaStream_t stream);

/// y[i] += bias[channel of i]; element i has channel i / inner % channels.
void add_bias(void* y, const float* bias, Element element, std::int64_t elements, std::int64_t inner,
              std::int64_t channels, cudaStream_t stream);

/// A window over 3 spatial dimensions with the strides of both tensors {n, c, d, h, w}.
struct PoolShape {
  std::array<std::int64_t, 5> in{}, out{}, in_stride{}, out_stride{};
  std::array<std::int64_t, 3> kernel{}, stride{}, pad{};
  bool largest = true;  ///< or mean of the elements that are no padding
};
/// `taps`: which tap of the window was the largest, in the order of y's memory; null for means.
void pool_forward(const PoolShape& shape, const void* x, void* y, std::uint16_t* taps, Element element,
                  cudaStream_t stream);
void pool_backward(const PoolShape& shape, const void* dy, void* dx, const std::uint16_t* taps,
                   Element element, cudaStream_t stream);

/// Nearest neighbour by integer factors of {n, c, d, h, w}; backward sums.
struct UpSampleShape {
  std::array<std::int64_t, 5> in{}, in_stride{}, out_stride{};
  std::array<std::int64_t, 3> factor{1, 1, 1};
};
void up_sample_forward(const UpSampleShape& shape, const void* x, void* y, Element element,
                       cudaStream_t stream);
void up_sample_backward(const UpSampleShape& shape, const void* dy, void* dx, Element element,
                        cudaStream_t stream);

/// Row `tokens[i]` of the table; backward adds to `table_gradient`, which must be zero.
void embedding_forward(const float* tokens, const float* table, void* y, Element element, std::int64_t count,
                       std::int64_t columns, cudaStream_t stream);
void embedding_backward(const float* tokens, const void* dy, float* table_gradient, Element element,
                        std::int64_t count, std::int64_t columns, cudaStream_t stream);

}  // namespace stepcast::cudnn
