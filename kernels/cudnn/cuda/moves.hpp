#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "kernels/cudnn/cuda/element.hpp"

/// Kernels that copy elements (moves.cu, pools.cu, embeddings.cu), also elements that are read several times
/// (up-sampling, embeddings) with the sums of their gradients. They are started on a stream and return at
/// once.
namespace stepcast::cudnn {

constexpr int kMoveDims = 5;

/// A copy of a box of elements with separate strides [elements] in source and target: permutations, pads,
/// crops, halos and conversions. Moves the bytes of the box in both element types; what lies side by side
/// along one side in the source and along another in the target (NCHW to NHWC) is transposed in shared
/// memory.
struct Move {
  std::array<std::int64_t, kMoveDims> size{1, 1, 1, 1, 1}, from_stride{}, to_stride{};
  std::int64_t from_offset = 0, to_offset = 0;
  Element from_element = Element::f32, to_element = Element::f32;
};
void move_elements(const Move& move, const void* from, void* to, cudaStream_t stream);

/// to[i] = from[i]. Moves n elements of both types.
void convert(const void* from, Element from_element, void* to, Element to_element, std::size_t elements,
             cudaStream_t stream);

/// The conversion of `count` contiguous elements.
struct Conversion {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t count = 0;
};
/// Conversions in parts of at most this many elements, so that each block has one part, and large arrays have
/// many blocks.
constexpr std::int64_t kConversionPart = 1 << 14;
/// Converts all parts of a list in the device's memory in one launch. Moves their elements of both types.
void convert_parts(const Conversion* parts, int count, Element from_element, Element to_element,
                   cudaStream_t stream);

/// A copy of `count` contiguous elements from one offset to another.
struct CopySegment {
  std::int64_t from, to, count;
};
/// A list of copies in memory of the device; `longest` is the largest count.
struct CopySegments {
  const CopySegment* segments = nullptr;
  int count = 0;
  std::int64_t longest = 0;
};
void copy_segments(const CopySegments& segments, const void* from, Element from_element, void* to,
                   Element to_element, cudaStream_t stream);

/// y[i] = x[i] + bias[channel of i], where element i has channel i / inner % channels; y may be x. Moves 2 n
/// e bytes.
void add_bias(const void* x, void* y, const float* bias, Element element, std::int64_t elements,
              std::int64_t inner, std::int64_t channels, cudaStream_t stream);

/// A pooling window over 3 spatial dimensions, with the strides of both tensors {n, c, d, h, w}.
struct PoolShape {
  std::array<std::int64_t, 5> in{}, out{}, in_stride{}, out_stride{};
  std::array<std::int64_t, 3> kernel{}, stride{}, pad{};
  bool largest = true;  ///< maximum; false: mean of the elements that are not padding
};
/// The forward pass reads x, and writes y and 2 bytes of taps for each of its elements; the backward pass
/// reads these and writes dx. Windows that overlap are read again from a cache. Where the channels of both
/// images lie side by side, a thread works on 16 bytes of them.
/// @param taps  index in the window of each maximum, in the order of y's memory; null for means
void pool_forward(const PoolShape& shape, const void* x, void* y, std::uint16_t* taps, Element element,
                  cudaStream_t stream);
void pool_backward(const PoolShape& shape, const void* dy, void* dx, const std::uint16_t* taps,
                   Element element, cudaStream_t stream);

/// Nearest-neighbour up-sampling by integer factors of {n, c, d, h, w}; the backward pass sums. Moves both
/// images once.
struct UpSampleShape {
  std::array<std::int64_t, 5> in{}, in_stride{}, out_stride{};
  std::array<std::int64_t, 3> factor{1, 1, 1};
};
void up_sample_forward(const UpSampleShape& shape, const void* x, void* y, Element element,
                       cudaStream_t stream);
void up_sample_backward(const UpSampleShape& shape, const void* dy, void* dx, Element element,
                        cudaStream_t stream);

/// Copies row `tokens[i]` of the table to row i; the backward pass adds to `table_gradient`, which must be
/// zero. Moves n (4 + e) bytes for n elements of y, the backward pass n (8 + e).
void embedding_forward(const float* tokens, const float* table, void* y, Element element, std::int64_t count,
                       std::int64_t columns, cudaStream_t stream);
void embedding_backward(const float* tokens, const void* dy, float* table_gradient, Element element,
                        std::int64_t count, std::int64_t columns, cudaStream_t stream);

}  // namespace stepcast::cudnn
