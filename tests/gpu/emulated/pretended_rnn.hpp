#pragma once

#include "check/cases.hpp"
#include "pretended_cudnn.hpp"

/// Contents of the fake RNN's descriptors, and its weights: gates in the manual's order, in a space whose
/// order callers must not assume.
namespace stepcast::pretended {

struct Rnn {
  cudnnDataType_t type{};
  LayerKind kind{};
  bool both = false;
  int features = 0, hidden = 0;

  int gates() const { return kind == LayerKind::lstm ? 4 : 3; }
  int directions() const { return both ? 2 : 1; }
};

struct Sequence {
  cudnnDataType_t type{};
  int steps = 0, batch = 0, features = 0;
};

/// Values that the forward pass leaves for the backward passes.
struct Reserve {
  const void *x = nullptr, *weights = nullptr, *dy = nullptr;
};

constexpr std::size_t kWork = 1024;

inline Rnn& of(cudnnRNNDescriptor_t one) {
  return *reinterpret_cast<Rnn*>(one);
}
inline Sequence& of(cudnnRNNDataDescriptor_t one) {
  return *reinterpret_cast<Sequence*>(one);
}

/// cuDNN's index of a gate: input, forget, candidate, output (LSTM); reset, update, candidate (GRU).
inline int gate_of_model(const Rnn& rnn, int linear) {
  const int gru[] = {1, 0, 2};  // the model has update first
  return rnn.kind == LayerKind::gru ? gru[linear] : linear;
}

/// Offset of a matrix in the space; its bias follows after some unused elements.
inline std::int64_t begin_of(const Rnn& rnn, int direction, int linear) {
  std::int64_t at = 0;
  for (int d = 0; d <= direction; ++d) {
    for (int l = 0; l < 2 * rnn.gates(); ++l) {
      if (d == direction && l == linear) return at;
      at += std::int64_t{rnn.hidden} * ((l < rnn.gates() ? rnn.features : rnn.hidden) + 1) + 3;
    }
  }
  return at;
}

inline int columns_of(const Rnn& rnn, int linear) {
  return linear < rnn.gates() ? rnn.features : rnn.hidden;
}

/// Calls visit(array of the model, element, offset in the space) for all weights.
template <class Visit>
void for_each_weight(const Rnn& rnn, const Visit& visit) {
  for (int d = 0; d < rnn.directions(); ++d) {
    for (int l = 0; l < 2 * rnn.gates(); ++l) {
      const bool of_input = l < rnn.gates();
      const std::int64_t unit = d * rnn.gates() + gate_of_model(rnn, l % rnn.gates());
      const std::int64_t begin = begin_of(rnn, d, l), count = std::int64_t{rnn.hidden} * columns_of(rnn, l);
      for (std::int64_t i = 0; i < count; ++i) visit(of_input ? 0 : 1, unit * count + i, begin + i);
      for (std::int64_t i = 0; of_input && i < rnn.hidden; ++i)
        visit(2, unit * rnn.hidden + i, begin + count + i);
    }
  }
}

inline test::Array array_of(cudnnDataType_t type, const void* memory, std::size_t count) {
  test::Array values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(read(cuda_type(type), memory, i));
  return values;
}

inline std::size_t elements(const Sequence& s) {
  return static_cast<std::size_t>(s.batch) * s.steps * s.features;
}

inline test::Case case_of(const Rnn& rnn, const Sequence& x, const void* values, const void* weights) {
  test::Case c;
  c.layer = test::recurrent_layer(rnn.kind, {x.steps, rnn.features}, rnn.hidden, rnn.both, true);
  c.batch = x.batch;
  c.inputs = {array_of(rnn.type, values, elements(x))};
  for (const ParameterTensor& one : c.layer.parameters) {
    std::size_t count = 1;
    for (const std::int64_t size : one.shape) count *= size;
    c.parameters.emplace_back(count);
  }
  for_each_weight(rnn, [&](std::size_t array, std::size_t element, std::int64_t at) {
    c.parameters[array][element] = read(cuda_type(rnn.type), weights, at);
  });
  return c;
}

inline bool agree(const Rnn& rnn, const Sequence& x, const Sequence& y, const Tensor& state) {
  return x.type == rnn.type && y.type == rnn.type && x.features == rnn.features && x.batch == y.batch &&
         x.steps == y.steps && y.features == rnn.directions() * rnn.hidden &&
         state.dims == Sizes{rnn.directions(), x.batch, rnn.hidden};
}

inline std::size_t weight_bytes(const Rnn& rnn) {
  const std::size_t each = rnn.type == CUDNN_DATA_FLOAT ? 4 : 2;
  return begin_of(rnn, rnn.directions(), 0) * each;
}

}  // namespace stepcast::pretended
