#include <algorithm>
#include <vector>

#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/moves.hpp"

namespace stepcast::cudnn {

namespace {

/// to[i] = from[i], by a thread of `step` threads; four elements at a time where both arrays are aligned.
template <class From, class To>
__device__ void convert_run(const From* from, To* to, std::int64_t n, std::int64_t thread,
                            std::int64_t step) {
  constexpr int kWidth = 4;
  const std::int64_t packs = are_aligned(from, to) ? n / kWidth : 0;
  for (std::int64_t i = thread; i < packs; i += step)
    store(converted<To>(load<kWidth>(from + kWidth * i)), to + kWidth * i);
  for (std::int64_t i = packs * kWidth + thread; i < n; i += step) to[i] = from_float<To>(to_float(from[i]));
}

template <class From, class To>
__global__ void convert_all(std::int64_t n, const From* from, To* to) {
  convert_run(from, to, n, first_index(), index_step());
}

template <class From, class To>
__global__ void convert_part(const Conversion* parts) {
  const Conversion part = parts[blockIdx.x];
  convert_run(as<From>(part.from), as<To>(part.to), part.count, threadIdx.x, blockDim.x);
}

template <class From, class To>
__global__ void copy_listed(const CopySegment* segments, const From* from, To* to) {
  const CopySegment segment = segments[blockIdx.y];
  convert_run(from + segment.from, to + segment.to, segment.count, first_index(), index_step());
}

/// A pack of V elements has either V channels (inner is 1) or one.
template <class T, int V, class Index>
__global__ void add_bias_kernel(const T* x, T* y, const float* bias, Index packs, Divisor<Index> inner,
                                Divisor<Index> channels) {
  for (Index i = first_index(); i < packs; i += static_cast<Index>(index_step())) {
    AlignedVector<T, V> vector = load<V>(x + std::int64_t{V} * i);
    Index plane = inner.quotient(V * i);
    const Index channel = take(plane, channels);
    AlignedVector<float, V> added;
    if (inner.size == 1) added = load<V>(bias + channel);
    for (int j = 0; j < V; ++j)
      vector.v[j] = from_float<T>(to_float(vector.v[j]) + (inner.size == 1 ? added.v[j] : bias[channel]));
    store(vector, y + std::int64_t{V} * i);
  }
}

/// One dimension of a box, with its strides in source and target.
struct Side {
  std::int64_t size, from_stride, to_stride;
};

/// The box's dimensions, outermost in the target's memory first, so that neighbouring threads write
/// neighbouring elements. Merges two dimensions that are contiguous in both arrays.
std::vector<Side> sides_of(const Move& move) {
  std::vector<Side> all, merged;
  for (std::size_t d = 0; d < kMoveDims; ++d) {
    if (move.size[d] != 1) all.push_back({move.size[d], move.from_stride[d], move.to_stride[d]});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Side& a, const Side& b) { return a.to_stride > b.to_stride; });
  for (const Side& one : all) {
    const bool follows = !merged.empty() && merged.back().from_stride == one.size * one.from_stride &&
                         merged.back().to_stride == one.size * one.to_stride;
    if (follows)
      merged.back() = {merged.back().size * one.size, one.from_stride, one.to_stride};
    else
      merged.push_back(one);
  }
  return merged;
}

template <class Index>
struct Box {
  int sides = 0;
  Divisor<Index> size[kMoveDims];
  std::int64_t from_stride[kMoveDims], to_stride[kMoveDims];

  void add(const Side& side) {
    size[sides] = Divisor<Index>(side.size);
    from_stride[sides] = side.from_stride;
    to_stride[sides++] = side.to_stride;
  }
  /// Advances the places in both arrays to element i.
  __device__ void advance(Index i, std::int64_t& source, std::int64_t& target) const {
    for (int d = sides - 1; d >= 0; --d) {
      const Index at = take(i, size[d]);
      source += at * from_stride[d];
      target += at * to_stride[d];
    }
  }
};

template <class Index>
Box<Index> on_device(const std::vector<Side>& sides) {
  Box<Index> box{};
  for (const Side& one : sides) box.add(one);
  return box;
}

template <class From, class To, class Index>
__global__ void move_box(Box<Index> box, Index n, const From* from, To* to) {
  for (Index i = first_index(); i < n; i += static_cast<Index>(index_step())) {
    std::int64_t source = 0, target = 0;
    box.advance(i, source, target);
    to[target] = from_float<To>(to_float(from[source]));
  }
}

constexpr int kTile = 64;

/// A box whose `rows` lie side by side in the source, and whose `columns` lie side by side in the target.
struct Transposition {
  Side rows, columns;
  Divisor<std::int32_t> row_tiles, column_tiles;
  Box<std::int32_t> others;
  std::int64_t tiles = 0;
};

/// Moves a tile of 64 x 64 elements a block, by shared memory: whole rows of the tile are read, and whole
/// columns are written. A thread loads all its elements before it stores the first, so that its loads
/// overlap (memory-level parallelism).
template <class From, class To>
__global__ void transpose_tiles(Transposition t, const From* from, To* to) {
  constexpr int kPad = 4 / sizeof(To);  // puts the elements of a column into different banks
  constexpr int kLines = kThreads / kTile, kEach = kTile / kLines;
  __shared__ To tile[kTile][kTile + kPad];
  std::int32_t block = blockIdx.x;
  const std::int64_t row = std::int64_t{take(block, t.row_tiles)} * kTile;
  const std::int64_t column = std::int64_t{take(block, t.column_tiles)} * kTile;
  std::int64_t source = 0, target = 0;
  t.others.advance(block, source, target);
  const int lane = threadIdx.x % kTile, line = threadIdx.x / kTile;
  From read[kEach] = {};
  for (int k = 0; k < kEach; ++k) {
    const std::int64_t r = row + lane, c = column + line + k * kLines;
    if (r < t.rows.size && c < t.columns.size) read[k] = from[source + r + c * t.columns.from_stride];
  }
  for (int k = 0; k < kEach; ++k) tile[line + k * kLines][lane] = from_float<To>(to_float(read[k]));
  __syncthreads();
  for (int k = 0; k < kEach; ++k) {
    const std::int64_t r = row + line + k * kLines, c = column + lane;
    if (r < t.rows.size && c < t.columns.size)
      to[target + c + r * t.rows.to_stride] = tile[lane][line + k * kLines];
  }
}

/// The transposition of a box; without tiles if it is none, or if it is too narrow for tiles.
Transposition transposition_of(const std::vector<Side>& sides) {
  Transposition t;
  const auto wide = [](const Side& side) { return side.size >= kTile / 2; };
  const auto rows = std::find_if(sides.begin(), sides.end(),
                                 [&](const Side& one) { return one.from_stride == 1 && wide(one); });
  const auto columns = std::find_if(sides.begin(), sides.end(),
                                    [&](const Side& one) { return one.to_stride == 1 && wide(one); });
  if (rows == sides.end() || columns == sides.end() || rows == columns) return t;
  const auto tiles = [](std::int64_t size) { return (size + kTile - 1) / kTile; };
  t.rows = *rows;
  t.columns = *columns;
  std::int64_t count = tiles(rows->size) * tiles(columns->size);
  t.row_tiles = Divisor<std::int32_t>(tiles(rows->size));
  t.column_tiles = Divisor<std::int32_t>(tiles(columns->size));
  for (auto one = sides.begin(); one != sides.end(); ++one) {
    if (one == rows || one == columns) continue;
    t.others.add(*one);
    count *= one->size;
  }
  if (count <= std::int64_t{1} << 30) t.tiles = count;
  return t;
}

std::int64_t product(const std::array<std::int64_t, kMoveDims>& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return n;
}

}  // namespace

void move_elements(const Move& move, const void* from, void* to, cudaStream_t stream) {
  const std::int64_t n = product(move.size);
  if (n == 0) return;
  const std::vector<Side> sides = sides_of(move);
  const Transposition transposition = transposition_of(sides);
  with_type(move.from_element, [&](auto source) {
    with_type(move.to_element, [&](auto target) {
      using From = typename decltype(source)::type;
      using To = typename decltype(target)::type;
      const From* first = as<From>(from) + move.from_offset;
      To* result = as<To>(to) + move.to_offset;
      if (transposition.tiles > 0) {
        const unsigned tiles = transposition.tiles;
        transpose_tiles<<<tiles, kThreads, 0, stream>>>(transposition, first, result);
        return;
      }
      with_index(n, [&](auto index) {
        using Index = decltype(index);
        const auto box = on_device<Index>(sides);
        move_box<<<blocks_for(n), kThreads, 0, stream>>>(box, static_cast<Index>(n), first, result);
      });
    });
  });
  check_launch("move_elements");
}

void convert(const void* from, Element from_element, void* to, Element to_element, std::size_t elements,
             cudaStream_t stream) {
  if (elements == 0) return;
  const std::int64_t n = elements;
  with_type(from_element, [&](auto source) {
    with_type(to_element, [&](auto target) {
      using From = typename decltype(source)::type;
      using To = typename decltype(target)::type;
      convert_all<<<blocks_for(n / 4 + 1), kThreads, 0, stream>>>(n, as<From>(from), as<To>(to));
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
  const dim3 blocks(blocks_for(segments.longest / 4 + 1), segments.count);
  with_type(from_element, [&](auto source) {
    with_type(to_element, [&](auto target) {
      using From = typename decltype(source)::type;
      using To = typename decltype(target)::type;
      copy_listed<<<blocks, kThreads, 0, stream>>>(segments.segments, as<From>(from), as<To>(to));
    });
  });
  check_launch("copy_listed");
}

void add_bias(const void* x, void* y, const float* bias, Element element, std::int64_t elements,
              std::int64_t inner, std::int64_t channels, cudaStream_t stream) {
  if (elements == 0) return;
  with_type(element, [&](auto type) {
    with_index(elements, [&](auto index) {
      using T = typename decltype(type)::type;
      using Index = decltype(index);
      constexpr int V = kPack<T>;
      const bool packs = (inner == 1 ? channels : inner) % V == 0 && are_aligned(x, y, bias);
      const auto count = static_cast<Index>(packs ? elements / V : elements);
      const Divisor<Index> plane(inner), all(channels);
      const auto* terms = as<T>(x);
      auto* sums = as<T>(y);
      const unsigned blocks = blocks_for(count);
      if (packs)
        add_bias_kernel<T, V><<<blocks, kThreads, 0, stream>>>(terms, sums, bias, count, plane, all);
      else
        add_bias_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(terms, sums, bias, count, plane, all);
    });
  });
  check_launch("add_bias");
}

namespace {

struct Factors {
  std::int64_t factor[3], out_stride[3];
};

/// One thread per input element, which is copied to a block of factor x factor x factor outputs, or sums
/// their gradients.
template <class T, bool Back, class Index>
__global__ void up_sample_kernel(Box<Index> inputs, Factors f, Index n, const T* from, T* to) {
  for (Index i = first_index(); i < n; i += static_cast<Index>(index_step())) {
    std::int64_t in = 0, corner = 0;
    inputs.advance(i, in, corner);
    float sum = 0;
    for (std::int64_t a = 0; a < f.factor[0]; ++a) {
      for (std::int64_t b = 0; b < f.factor[1]; ++b) {
        for (std::int64_t c = 0; c < f.factor[2]; ++c) {
          const std::int64_t out = corner + a * f.out_stride[0] + b * f.out_stride[1] + c * f.out_stride[2];
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

template <bool Back>
void up_sample(const UpSampleShape& shape, const void* from, void* to, Element element, cudaStream_t stream) {
  const std::int64_t n = product(shape.in);
  if (n == 0) return;
  Move corners{.size = shape.in, .from_stride = shape.in_stride, .to_stride = shape.out_stride};
  Factors factors{};
  for (std::size_t d = 0; d < 3; ++d) {
    factors.factor[d] = shape.factor[d];
    factors.out_stride[d] = shape.out_stride[d + 2];
    corners.to_stride[d + 2] *= shape.factor[d];
  }
  with_type(element, [&](auto type) {
    with_index(n, [&](auto index) {
      using T = typename decltype(type)::type;
      using Index = decltype(index);
      const auto box = on_device<Index>(sides_of(corners));
      up_sample_kernel<T, Back><<<blocks_for(n), kThreads, 0, stream>>>(box, factors, static_cast<Index>(n),
                                                                        as<T>(from), as<T>(to));
    });
  });
  check_launch("up_sample");
}

}  // namespace

void up_sample_forward(const UpSampleShape& shape, const void* x, void* y, Element element,
                       cudaStream_t stream) {
  up_sample<false>(shape, x, y, element, stream);
}

void up_sample_backward(const UpSampleShape& shape, const void* dy, void* dx, Element element,
                        cudaStream_t stream) {
  up_sample<true>(shape, dy, dx, element, stream);
}

}  // namespace stepcast::cudnn
