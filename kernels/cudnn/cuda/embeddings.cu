#include "kernels/cudnn/cuda/device_code.cuh"
#include "kernels/cudnn/cuda/moves.hpp"

namespace stepcast::cudnn {
namespace {

/// @param columns  packs of V elements in a row
template <class T, int V, class Index>
__global__ void take_rows(const float* tokens, const float* table, T* y, Index packs,
                          Divisor<Index> columns) {
  for (Index i = first_index(); i < packs; i += static_cast<Index>(index_step())) {
    Index token = i;
    const std::int64_t column = take(token, columns), row = static_cast<std::int64_t>(tokens[token]);
    store(converted<T>(load<V>(table + V * (row * columns.size + column))), y + std::int64_t{V} * i);
  }
}

template <class T, class Index>
__global__ void add_rows(const float* tokens, const T* dy, float* gradient, Index n, Divisor<Index> columns) {
  for (Index i = first_index(); i < n; i += static_cast<Index>(index_step())) {
    Index token = i;
    const std::int64_t column = take(token, columns), row = static_cast<std::int64_t>(tokens[token]);
    atomicAdd(gradient + row * columns.size + column, to_float(dy[i]));
  }
}

}  // namespace

void embedding_forward(const float* tokens, const float* table, void* y, Element element, std::int64_t count,
                       std::int64_t columns, cudaStream_t stream) {
  const std::int64_t n = count * columns;
  if (n == 0) return;
  const bool packs = columns % 4 == 0 && are_aligned(table, y);
  with_type(element, [&](auto type) {
    with_index(n, [&](auto index) {
      using T = typename decltype(type)::type;
      using Index = decltype(index);
      const Divisor<Index> row(packs ? columns / 4 : columns);
      const auto taken = static_cast<Index>(packs ? n / 4 : n);
      auto* result = as<T>(y);
      const unsigned blocks = blocks_for(taken);
      if (packs)
        take_rows<T, 4><<<blocks, kThreads, 0, stream>>>(tokens, table, result, taken, row);
      else
        take_rows<T, 1><<<blocks, kThreads, 0, stream>>>(tokens, table, result, taken, row);
    });
  });
  check_launch("take_rows");
}

void embedding_backward(const float* tokens, const void* dy, float* table_gradient, Element element,
                        std::int64_t count, std::int64_t columns, cudaStream_t stream) {
  const std::int64_t n = count * columns;
  if (n == 0) return;
  with_type(element, [&](auto type) {
    with_index(n, [&](auto index) {
      using T = typename decltype(type)::type;
      using Index = decltype(index);
      add_rows<<<blocks_for(n), kThreads, 0, stream>>>(tokens, as<T>(dy), table_gradient,
                                                       static_cast<Index>(n), Divisor<Index>(columns));
    });
  });
  check_launch("add_rows");
}

}  // namespace stepcast::cudnn
