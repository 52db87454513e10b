#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/moves.hpp"

namespace stepcast::cudnn {

namespace {

template <class Index>
struct Box {
  Index size[kMoveDims];
  std::int64_t from_stride[kMoveDims], to_stride[kMoveDims];
};

template <class From, class To, class Index>
__global__ void move_box(Box<Index> box, Index n, const From* from, To* to) {
  for (Index i = static_cast<Index>(first_index()); i < n; i += static_cast<Index>(index_step())) {
    Index rest = i;
    std::int64_t source = 0, target = 0;
    for (int d = kMoveDims - 1; d >= 0; --d) {
      const Index at = take(rest, box.size[d]);
      source += at * box.from_stride[d];
      target += at * box.to_stride[d];
    }
    to[target] = from_float<To>(to_float(from[source]));
  }
}

template <class From, class To>
__global__ void convert_all(std::int64_t n, const From* from, To* to) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) to[i] = from_float<To>(to_float(from[i]));
}

template <class From, class To>
__global__ void convert_part(const Conversion* parts) {
  const Conversion part = parts[blockIdx.x];
  const auto* from = static_cast<const From*>(part.from);
  auto* to = static_cast<To*>(part.to);
  for (std::int64_t i = threadIdx.x; i < part.count; i += blockDim.x)
    to[i] = from_float<To>(to_float(from[i]));
}

template <class From, class To>
__global__ void copy_listed(const CopySegment* segments, const From* from, To* to) {
  const CopySegment segment = segments[blockIdx.y];
  for (std::int64_t i = first_index(); i < segment.count; i += index_step()) {
    to[segment.to + i] = from_float<To>(to_float(from[segment.from + i]));
  }
}

template <class T, class Index>
__global__ void add_bias_kernel(T* y, const float* bias, Index n, Index inner, Index channels) {
  for (Index i = static_cast<Index>(first_index()); i < n; i += static_cast<Index>(index_step())) {
    y[i] = from_float<T>(to_float(y[i]) + bias[i / inner % channels]);
  }
}

template <class Sizes>
std::int64_t product(const Sizes& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return n;
}

/// The box's dimensions in the order of the target's memory, so that neighbouring threads write neighbouring
/// elements.
std::array<std::size_t, kMoveDims> sides_outermost_first(const Move& move) {
  std::array<std::size_t, kMoveDims> sides{};
  std::iota(sides.begin(), sides.end(), std::size_t{0});
  const auto distance = [&](std::size_t d) {
    return move.size[d] == 1 ? std::numeric_limits<std::int64_t>::max() : move.to_stride[d];
  };
  std::stable_sort(sides.begin(), sides.end(),
                   [&](std::size_t a, std::size_t b) { return distance(a) > distance(b); });
  return sides;
}

template <class Index>
Box<Index> on_device(const Move& move) {
  Box<Index> box{};
  int d = 0;
  for (const std::size_t at : sides_outermost_first(move)) {
    box.size[d] = static_cast<Index>(move.size[at]);
    box.from_stride[d] = move.from_stride[at];
    box.to_stride[d++] = move.to_stride[at];
  }
  return box;
}

}  // namespace

void move_elements(const Move& move, const void* from, void* to, cudaStream_t stream) {
  const std::int64_t n = product(move.size);
  if (n == 0) return;
  with_type(move.from_element, [&](auto source) {
    with_type(move.to_element, [&](auto target) {
      with_index(n, [&](auto index) {
        using From = typename decltype(source)::type;
        using To = typename decltype(target)::type;
        using Index = decltype(index);
        move_box<<<blocks_for(n), kThreads, 0, stream>>>(on_device<Index>(move), static_cast<Index>(n),
                                                         static_cast<const From*>(from) + move.from_offset,
                                                         static_cast<To*>(to) + move.to_offset);
      });
    });
  });
  check_launch("move_box");
}

void convert(const void* from, Element from_element, void* to, Element to_element, std::size_t elements,
             cudaStream_t stream) {
  if (elements == 0) return;
  const auto n = static_cast<std::int64_t>(elements);
  with_type(from_element, [&](auto source) {
    with_type(to_element, [&](auto target) {
      using From = typename decltype(source)::type;
      using To = typename decltype(target)::type;
      convert_all<<<blocks_for(n), kThreads, 0, stream>>>(n, static_cast<const From*>(from),
                                                          static_cast<To*>(to));
    });
  });
  check_launch("convert_all");
}

void convert_parts(const Conversion* parts, int count, Element from_element, Element to_element,
                   cudaStream_t stream) {
  if (count == 0) return;
  with_type(from_element, [&](auto source) {
    with_type(to_element, [&](auto target) {
      using From = typename decltype(source)::type;
      using To = typename decltype(target)::type;
      convert_part<From, To><<<static_cast<unsigned>(count), kThreads, 0, stream>>>(parts);
    });
  });
  check_launch("convert_part");
}

void copy_segments(const CopySegments& segments, const void* from, Element from_element, void* to,
                   Element to_element, cudaStream_t stream) {
  if (segments.count == 0) return;
  const dim3 blocks(blocks_for(segments.longest), static_cast<unsigned>(segments.count));
  with_type(from_element, [&](auto source) {
    with_type(to_element, [&](auto target) {
      using From = typename decltype(source)::type;
      using To = typename decltype(target)::type;
      copy_listed<<<blocks, kThreads, 0, stream>>>(segments.segments, static_cast<const From*>(from),
                                                   static_cast<To*>(to));
    });
  });
  check_launch("copy_listed");
}

void add_bias(void* y, const float* bias, Element element, std::int64_t elements, std::int64_t inner,
              std::int64_t channels, cudaStream_t stream) {
  with_type(element, [&](auto type) {
    with_index(elements, [&](auto index) {
      using T = typename decltype(type)::type;
      using Index = decltype(index);
      add_bias_kernel<<<blocks_for(elements), kThreads, 0, stream>>>(
          static_cast<T*>(y), bias, static_cast<Index>(elements), static_cast<Index>(inner),
          static_cast<Index>(channels));
    });
  });
  check_launch("add_bias");
}

namespace {

struct UpSample {
  std::int64_t in[5], in_stride[5], out_stride[5], factor[5];
};

UpSample on_device(const UpSampleShape& s) {
  UpSample u{};
  for (int d = 0; d < 5; ++d) {
    const auto at = static_cast<std::size_t>(d);
    u.in[d] = s.in[at];
    u.in_stride[d] = s.in_stride[at];
    u.out_stride[d] = s.out_stride[at];
    u.factor[d] = d < 2 ? 1 : s.factor[at - 2];
  }
  return u;
}

/// One thread per input element, which is copied to a block of factor x factor x factor outputs, or sums
/// their gradients.
template <class T, bool Back>
__global__ void up_sample_kernel(UpSample u, std::int64_t n, const T* from, T* to) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    std::int64_t rest = i, in = 0, corner = 0;
    for (int d = 4; d >= 0; --d) {
      const std::int64_t at = rest % u.in[d];
      rest /= u.in[d];
      in += at * u.in_stride[d];
      corner += at * u.factor[d] * u.out_stride[d];
    }
    float sum = 0;
    for (std::int64_t a = 0; a < u.factor[2]; ++a) {
      for (std::int64_t b = 0; b < u.factor[3]; ++b) {
        for (std::int64_t c = 0; c < u.factor[4]; ++c) {
          const std::int64_t out = corner + a * u.out_stride[2] + b * u.out_stride[3] + c * u.out_stride[4];
          if (Back) {
            sum += to_float(from[out]);
          } else {
            to[out] = from[in];
          }
        }
      }
    }
    if (Back) to[in] = from_float<T>(sum);
  }
}

template <class T>
__global__ void take_rows(const float* tokens, const float* table, T* y, std::int64_t n,
                          std::int64_t columns) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    const auto row = static_cast<std::int64_t>(tokens[i / columns]);
    y[i] = from_float<T>(table[row * columns + i % columns]);
  }
}

template <class T>
__global__ void add_rows(const float* tokens, const T* dy, float* gradient, std::int64_t n,
                         std::int64_t columns) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    const auto row = static_cast<std::int64_t>(tokens[i / columns]);
    atomicAdd(gradient + row * columns + i % columns, to_float(dy[i]));
  }
}

std::int64_t inputs(const UpSampleShape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape.in) n *= size;
  return n;
}

}  // namespace

void up_sample_forward(const UpSampleShape& shape, const void* x, void* y, Element element,
                       cudaStream_t stream) {
  const std::int64_t n = inputs(shape);
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    up_sample_kernel<T, false><<<blocks_for(n), kThreads, 0, stream>>>(
        on_device(shape), n, static_cast<const T*>(x), static_cast<T*>(y));
  });
  check_launch("up_sample");
}

void up_sample_backward(const UpSampleShape& shape, const void* dy, void* dx, Element element,
                        cudaStream_t stream) {
  const std::int64_t n = inputs(shape);
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    up_sample_kernel<T, true><<<blocks_for(n), kThreads, 0, stream>>>(
        on_device(shape), n, static_cast<const T*>(dy), static_cast<T*>(dx));
  });
  check_launch("up_sample");
}

void embedding_forward(const float* tokens, const float* table, void* y, Element element, std::int64_t count,
                       std::int64_t columns, cudaStream_t stream) {
  const std::int64_t n = count * columns;
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    take_rows<<<blocks_for(n), kThreads, 0, stream>>>(tokens, table, static_cast<T*>(y), n, columns);
  });
  check_launch("take_rows");
}

void embedding_backward(const float* tokens, const void* dy, float* table_gradient, Element element,
                        std::int64_t count, std::int64_t columns, cudaStream_t stream) {
  const std::int64_t n = count * columns;
  with_type(element, [&](auto type) {
    using T = typename decltype(type)::type;
    add_rows<<<blocks_for(n), kThreads, 0, stream>>>(tokens, static_cast<const T*>(dy), table_gradient, n,
                                                     columns);
  });
  check_launch("add_rows");
}

}  // namespace stepcast::cudnn
