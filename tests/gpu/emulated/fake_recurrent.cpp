#include <stdexcept>

#include "check/cases.hpp"
#include "fake_cudnn.hpp"
#include "fake_streams.hpp"

/// Contents of the fake RNN's descriptors, and its weights: gates in the manual's order, in a space whose
/// order callers must not assume.
namespace stepcast::fake {

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

}  // namespace stepcast::fake

// A fake of cuDNN's RNN by its manual: order of gates, weights in a space with an order of its own,
// batch-major sequences, and a reserve space that passes hand on. The recurrences are the reference
// implementations, whose equations are the manual's. It replaces the library's functions.

using namespace stepcast;
using namespace stepcast::fake;

namespace {

template <class Handle, class Value>
cudnnStatus_t make(Handle* made) {
  *made = reinterpret_cast<Handle>(new Value);
  return CUDNN_STATUS_SUCCESS;
}

/// The reserve space is read when the work runs, too late for a status.
void require(bool reserved) {
  if (!reserved) throw std::logic_error("a pass of the fake RNN finds another pass's reserve space");
}

}  // namespace

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* made) {
  return make<cudnnDropoutDescriptor_t, char>(made);
}
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t one) {
  delete reinterpret_cast<char*>(one);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t, cudnnHandle_t, float dropout, void*,
                                        std::size_t, unsigned long long) {
  return dropout == 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* made) {
  return make<cudnnRNNDescriptor_t, Rnn>(made);
}
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t one) {
  delete &of(one);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t one, cudnnRNNAlgo_t, cudnnRNNMode_t mode,
                                       cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t,
                                       cudnnMathType_t, std::int32_t features, std::int32_t hidden,
                                       std::int32_t projected, std::int32_t layers, cudnnDropoutDescriptor_t,
                                       std::uint32_t flags) {
  const bool known = (mode == CUDNN_LSTM || mode == CUDNN_GRU) && bias == CUDNN_RNN_SINGLE_INP_BIAS &&
                     input == CUDNN_LINEAR_INPUT && projected == hidden && layers == 1 &&
                     flags == CUDNN_RNN_PADDED_IO_ENABLED;
  of(one) = {type, mode == CUDNN_LSTM ? LayerKind::lstm : LayerKind::gru, direction == CUDNN_BIDIRECTIONAL,
             features, hidden};
  return known ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* made) {
  return make<cudnnRNNDataDescriptor_t, Sequence>(made);
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t one) {
  delete &of(one);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t one, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch, int features,
                                        const int lengths[], void*) {
  of(one) = {type, steps, batch, features};
  for (int i = 0; i < batch; ++i)
    if (lengths[i] != steps) return CUDNN_STATUS_NOT_SUPPORTED;
  return layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED ? CUDNN_STATUS_SUCCESS
                                                              : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t rnn, std::size_t* bytes) {
  *bytes = weight_bytes(of(rnn));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t, std::size_t* work, std::size_t* reserve) {
  *work = kWork;
  *reserve = mode == CUDNN_FWD_MODE_TRAINING ? sizeof(Reserve) : 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t one, std::int32_t layer,
                                      std::size_t bytes, const void* space, std::int32_t linear,
                                      cudnnTensorDescriptor_t matrix, void** matrix_at,
                                      cudnnTensorDescriptor_t bias, void** bias_at) {
  const Rnn& rnn = of(one);
  if (bytes != weight_bytes(rnn) || layer >= rnn.directions()) return CUDNN_STATUS_BAD_PARAM;
  const std::int64_t each = rnn.type == CUDNN_DATA_FLOAT ? 4 : 2, begin = begin_of(rnn, layer, linear);
  const int columns = columns_of(rnn, linear);
  auto* start = static_cast<char*>(const_cast<void*>(space));
  of(matrix) = {rnn.type, {1, rnn.hidden, columns}, {rnn.hidden * columns, columns, 1}};
  *matrix_at = start + each * begin;
  of(bias) = {rnn.type, {1, rnn.hidden, 1}, {rnn.hidden, 1, 1}};
  *bias_at = linear < rnn.gates() ? start + each * (begin + std::int64_t{rnn.hidden} * columns) : nullptr;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t one, cudnnForwardMode_t mode,
                              const std::int32_t lengths[], cudnnRNNDataDescriptor_t x_desc, const void* x,
                              cudnnRNNDataDescriptor_t y_desc, void* y, cudnnTensorDescriptor_t state,
                              const void* hx, void* hy, cudnnTensorDescriptor_t cell, const void* cx,
                              void* cy, std::size_t bytes, const void* weights, std::size_t work_bytes,
                              void* work, std::size_t reserve_bytes, void* reserve) {
  const Rnn rnn = of(one);
  const Sequence in = of(x_desc), out = of(y_desc);
  const bool refused = !agree(rnn, in, out, of(state)) || mode != CUDNN_FWD_MODE_TRAINING ||
                       lengths != nullptr || hx != nullptr || hy != nullptr || cx != nullptr ||
                       cy != nullptr || (rnn.kind == LayerKind::lstm) != (cell != nullptr) ||
                       bytes != weight_bytes(rnn) || work == nullptr || work_bytes < kWork ||
                       reserve_bytes < sizeof(Reserve);
  if (refused) return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(handle, [=] {
    const test::Array values = reference::forward(case_of(rnn, in, x, weights));
    for (std::size_t i = 0; i < values.size(); ++i) write(cuda_type(rnn.type), y, i, values[i]);
    *static_cast<Reserve*>(reserve) = {x, weights, nullptr};
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t one, const std::int32_t[],
                                      cudnnRNNDataDescriptor_t y_desc, const void*, const void* dy,
                                      cudnnRNNDataDescriptor_t x_desc, void* dx,
                                      cudnnTensorDescriptor_t state, const void* hx, const void* dhy,
                                      void* dhx, cudnnTensorDescriptor_t, const void* cx, const void* dcy,
                                      void* dcx, std::size_t bytes, const void* weights, std::size_t, void*,
                                      std::size_t, void* reserve) {
  const Rnn rnn = of(one);
  const Sequence in = of(x_desc), out = of(y_desc);
  for (const void* unused : {hx, dhy, static_cast<const void*>(dhx), cx, dcy, static_cast<const void*>(dcx)})
    if (unused != nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!agree(rnn, in, out, of(state)) || bytes != weight_bytes(rnn)) return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(handle, [=] {
    auto& kept = *static_cast<Reserve*>(reserve);
    require(kept.weights == weights);
    kept.dy = dy;
    const auto gradients =
        reference::backward(case_of(rnn, in, kept.x, weights), array_of(rnn.type, dy, elements(out)));
    for (std::size_t i = 0; i < gradients.inputs[0].size(); ++i)
      write(cuda_type(rnn.type), dx, i, gradients.inputs[0][i]);
  });
  return CUDNN_STATUS_SUCCESS;
}

/// Adds to the gradients. Needs the reserve space that the backward pass over the data wrote.
cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t one,
                                         cudnnWgradMode_t mode, const std::int32_t[],
                                         cudnnRNNDataDescriptor_t x_desc, const void* x,
                                         cudnnTensorDescriptor_t, const void* hx,
                                         cudnnRNNDataDescriptor_t y_desc, const void*, std::size_t bytes,
                                         void* weight_gradients, std::size_t, void*, std::size_t,
                                         void* reserve) {
  const Rnn rnn = of(one);
  const Sequence in = of(x_desc), out = of(y_desc);
  if (mode != CUDNN_WGRAD_MODE_ADD || hx != nullptr || bytes != weight_bytes(rnn))
    return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(handle, [=] {
    const auto& kept = *static_cast<Reserve*>(reserve);
    require(kept.x == x && kept.dy != nullptr);
    const auto gradients =
        reference::backward(case_of(rnn, in, x, kept.weights), array_of(rnn.type, kept.dy, elements(out)));
    const cudaDataType type = cuda_type(rnn.type);
    for_each_weight(rnn, [&](std::size_t array, std::size_t element, std::int64_t at) {
      write(type, weight_gradients, at,
            stepcast::fake::read(type, weight_gradients, at) + gradients.parameters[array][element]);
    });
  });
  return CUDNN_STATUS_SUCCESS;
}
