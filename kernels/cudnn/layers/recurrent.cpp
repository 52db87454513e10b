#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"
#include "models/network/layer.hpp"

namespace stepcast::cudnn {

RnnDesc describe_rnn(const Layer& layer, Element element, cudnnMathType_t math,
                     cudnnDropoutDescriptor_t dropout) {
  auto rnn = make_owned<RnnDesc>(cudnnCreateRNNDescriptor, "cudnnCreateRNNDescriptor");
  const std::int32_t hidden = layer.hidden;
  check(cudnnSetRNNDescriptor_v8(
            rnn.get(), CUDNN_RNN_ALGO_STANDARD, layer.kind == LayerKind::lstm ? CUDNN_LSTM : CUDNN_GRU,
            CUDNN_RNN_SINGLE_INP_BIAS, layer.bidirectional ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
            CUDNN_LINEAR_INPUT, cudnn_type(element), CUDNN_DATA_FLOAT, math, layer.input.back(), hidden,
            hidden, 1, dropout, CUDNN_RNN_PADDED_IO_ENABLED),
        "cudnnSetRNNDescriptor_v8");
  return rnn;
}

SequenceDesc describe_sequences(Element element, std::int64_t batch, std::int64_t steps,
                                std::int64_t features) {
  auto desc = make_owned<SequenceDesc>(cudnnCreateRNNDataDescriptor, "cudnnCreateRNNDataDescriptor");
  const std::vector<int> lengths(batch, steps);
  float padding = 0;  // zero bits mean zero in all data types
  check(cudnnSetRNNDataDescriptor(desc.get(), cudnn_type(element), CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
                                  steps, batch, features, lengths.data(), &padding),
        "cudnnSetRNNDataDescriptor");
  return desc;
}

namespace {

/// Copies between one of the model's arrays and cuDNN's weight space, in both directions, as lists on the
/// device.
struct WeightSegments {
  std::shared_ptr<void> into_space, out_of_space;
  int count = 0;
  std::int64_t longest = 0;

  CopySegments into() const { return {static_cast<const CopySegment*>(into_space.get()), count, longest}; }
  CopySegments out_of() const {
    return {static_cast<const CopySegment*>(out_of_space.get()), count, longest};
  }
};

/// cuDNN's index of one of the model's gates.
int cudnn_gate(LayerKind kind, int gate) {
  constexpr std::array<int, 3> kGru{1, 0, 2};  // u, r, o
  return kind == LayerKind::gru ? kGru[gate] : gate;
}

/// Offsets of a matrix and a bias in the weight space [elements].
struct Offsets {
  std::int64_t matrix, bias;
};

Offsets place_of(const Device& device, cudnnRNNDescriptor_t rnn, int direction, int linear, const void* space,
                 std::size_t bytes) {
  const auto matrix = make_owned<TensorDesc>(cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor");
  const auto bias = make_owned<TensorDesc>(cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor");
  void *matrix_at = nullptr, *bias_at = nullptr;
  check(cudnnGetRNNWeightParams(device.dnn.get(), rnn, direction, bytes, space, linear, matrix.get(),
                                &matrix_at, bias.get(), &bias_at),
        "cudnnGetRNNWeightParams");
  const std::int64_t element = bytes_of(device.element());
  const auto offset = [&](const void* at) {
    return at == nullptr ? -1 : (static_cast<const char*>(at) - static_cast<const char*>(space)) / element;
  };
  return {offset(matrix_at), offset(bias_at)};
}

void add(std::vector<CopySegment>& segments, std::int64_t from, std::int64_t to, std::int64_t count) {
  if (to < 0)
    throw GpuError("cudnnGetRNNWeightParams: cuDNN's weight space has no matrix or bias for a gate");
  segments.push_back({from, to, count});
}

std::shared_ptr<void> on_device(const Device& device, const std::vector<CopySegment>& segments) {
  const std::size_t bytes = segments.size() * sizeof(CopySegment);
  auto memory = allocate_bytes(bytes, device.stream.get());
  check(cudaMemcpyAsync(memory.get(), segments.data(), bytes, cudaMemcpyHostToDevice, device.stream.get()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(device.stream.get()), "cudaStreamSynchronize");
  return memory;
}

WeightSegments both_ways(const Device& device, std::vector<CopySegment> segments) {
  WeightSegments result;
  result.count = segments.size();
  for (const CopySegment& segment : segments) result.longest = std::max(result.longest, segment.count);
  result.into_space = on_device(device, segments);
  for (CopySegment& segment : segments) std::swap(segment.from, segment.to);
  result.out_of_space = on_device(device, segments);
  return result;
}

/// The copies of weight_input {directions, gates, hidden, features}, weight_hidden {.., hidden} and bias {..,
/// 1}. The model's gates are i, f, g, o (LSTM) and u, r, o (GRU); cuDNN's GRU has r, u, o.
std::array<WeightSegments, 3> recurrent_weights(const Device& device, cudnnRNNDescriptor_t rnn,
                                                const Layer& layer, const void* space, std::size_t bytes) {
  const std::int64_t hidden = layer.hidden, features = layer.input.back();
  const int gates = layer.kind == LayerKind::lstm ? 4 : 3;
  std::array<std::vector<CopySegment>, 3> segments;
  for (int d = 0; d < (layer.bidirectional ? 2 : 1); ++d) {
    for (int gate = 0; gate < gates; ++gate) {
      const int linear = cudnn_gate(layer.kind, gate);
      const Offsets input = place_of(device, rnn, d, linear, space, bytes);
      const Offsets recurrent = place_of(device, rnn, d, gates + linear, space, bytes);
      const std::int64_t unit = d * gates + gate;
      add(segments[0], unit * hidden * features, input.matrix, hidden * features);
      add(segments[1], unit * hidden * hidden, recurrent.matrix, hidden * hidden);
      add(segments[2], unit * hidden, input.bias, hidden);
    }
  }
  return {both_ways(device, segments[0]), both_ways(device, segments[1]), both_ways(device, segments[2])};
}

using DropoutDesc = Owned<cudnnDropoutDescriptor_t, cudnnDestroyDropoutDescriptor>;

/// LSTM or GRU over whole sequences of equal length, in one or both directions; the initial state is zero.
class Recurrent final : public CudnnLayer {
 public:
  Recurrent(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        source_(reordered(forward_, input(), Order::row_major)),
        sequence_(scratch({batch(), steps(), directions() * layer().hidden})) {
    for (std::size_t i = 0; i < layer().parameters.size(); ++i) add_parameter();
    describe_all();
    make_spaces();
    for (std::size_t i = 0; i < 3; ++i) {
      forward_.emplace_back([this, i] {
        copy_segments(segments_[i].into(), parameter(i).value, Element::f32, weights_.get(), element(),
                      stream());
      });
    }
    forward_.emplace_back([this] { compute(); });
    if (whole_sequence()) {
      share_output(sequence_);
      return;
    }
    make_output(batched(layer().output));
    for (std::int64_t d = 0; d < directions(); ++d) {
      forward_.emplace_back(
          [this, move = last_state(d)] { move_elements(move, sequence_.data(), result().data(), stream()); });
    }
  }

 private:
  std::int64_t steps() const { return layer().input.front(); }
  std::int64_t directions() const { return layer().bidirectional ? 2 : 1; }
  bool whole_sequence() const { return layer().output.size() == 2; }
  static int count(std::int64_t value) { return value; }
  cudnnTensorDescriptor_t cell() const { return layer().kind == LayerKind::lstm ? state_.get() : nullptr; }
  /// The lengths in the device's memory; null from cuDNN 8.9.1 on, which reads those of the descriptor and
  /// wants no others. Source: cuDNN's manual, cudnnRNNForward, devSeqLengths.
  const std::int32_t* lengths() const {
    return cudnnGetVersion() >= 8901 ? nullptr : static_cast<const std::int32_t*>(lengths_.get());
  }

  /// The math type that PyTorch chooses: tensor cores for fp16, none for f32, else cuDNN's default.
  cudnnMathType_t math() const {
    return element() == Element::bf16 ? CUDNN_DEFAULT_MATH : device()->cudnn_math();
  }

  void describe_all() {
    // cuDNN requires a dropout descriptor even without dropout.
    dropout_ = make_owned<DropoutDesc>(cudnnCreateDropoutDescriptor, "cudnnCreateDropoutDescriptor");
    check(cudnnSetDropoutDescriptor(dropout_.get(), device()->dnn.get(), 0, nullptr, 0, 0),
          "cudnnSetDropoutDescriptor");
    rnn_ = describe_rnn(layer(), element(), math(), dropout_.get());
    x_ = describe_sequences(element(), batch(), steps(), layer().input.back());
    y_ = describe_sequences(element(), batch(), steps(), directions() * layer().hidden);
    const CudnnTensor state = scratch({directions(), batch(), layer().hidden});
    state_ = describe(state, state.shape());
  }

  void make_spaces() {
    check(cudnnGetRNNWeightSpaceSize(device()->dnn.get(), rnn_.get(), &weight_bytes_),
          "cudnnGetRNNWeightSpaceSize");
    check(cudnnGetRNNTempSpaceSizes(device()->dnn.get(), rnn_.get(), CUDNN_FWD_MODE_TRAINING, x_.get(),
                                    &work_bytes_, &reserve_bytes_),
          "cudnnGetRNNTempSpaceSizes");
    weights_ = allocate_bytes(weight_bytes_, stream());
    weight_gradients_ = allocate_bytes(weight_bytes_, stream());
    reserve_ = allocate_bytes(reserve_bytes_, stream());
    if (work_bytes_ > device()->workspace.bytes) {
      throw GpuError(
          "cudnnGetRNNTempSpaceSizes: cuDNN needs more workspace than allowed; give a larger --workspace");
    }
    device()->workspace.use(work_bytes_);
    const std::vector<std::int32_t> lengths(batch(), count(steps()));
    const std::size_t bytes = lengths.size() * sizeof(std::int32_t);
    lengths_ = allocate_bytes(bytes, stream());
    check(cudaMemcpyAsync(lengths_.get(), lengths.data(), bytes, cudaMemcpyHostToDevice, stream()),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    segments_ = recurrent_weights(*device(), rnn_.get(), layer(), weights_.get(), weight_bytes_);
  }

  /// Runs the forward pass. Null pointers for states mean zeros before the first step and no output of the
  /// last state.
  void compute() const {
    check(cudnnRNNForward(device()->dnn.get(), rnn_.get(), CUDNN_FWD_MODE_TRAINING, lengths(), x_.get(),
                          source_.data(), y_.get(), sequence_.data(), state_.get(), nullptr, nullptr, cell(),
                          nullptr, nullptr, weight_bytes_, weights_.get(), work_bytes_,
                          device()->workspace.data(), reserve_bytes_, reserve_.get()),
          "cudnnRNNForward");
  }

  /// The copy of a direction's last state from the sequence to its part of the {batch, directions x hidden}
  /// output: the forward direction ends at the last step, the backward one at the first.
  Move last_state(std::int64_t d) const {
    const std::int64_t hidden = layer().hidden, width = directions() * hidden;
    Move move{.size = {1, 1, 1, batch(), hidden},
              .from_stride = {0, 0, 0, steps() * width, 1},
              .to_stride = {0, 0, 0, width, 1},
              .from_element = element(),
              .to_element = element()};
    move.from_offset = (d == 0 ? steps() - 1 : 0) * width + d * hidden;
    move.to_offset = d * hidden;
    return move;
  }

  /// The gradient of the whole sequence; zero except for the last states if only these are read.
  CudnnTensor sequence_gradient(Steps& pass) {
    const CudnnTensor last = output_gradient(pass, Order::row_major);
    if (whole_sequence()) return last;
    const CudnnTensor sequence = scratch(sequence_.shape());
    for (std::int64_t d = 0; d < directions(); ++d) {
      Move back = last_state(d);
      std::swap(back.from_stride, back.to_stride);
      std::swap(back.from_offset, back.to_offset);
      pass.emplace_back(
          [this, last, sequence, back] { move_elements(back, last.data(), sequence.data(), stream()); });
    }
    return sequence;
  }

  /// The gradients of the weights need the reserve space that the backward pass over the data writes.
  void connect() override {
    Steps& first = wanted() ? backward_data_ : backward_weights_;
    const CudnnTensor dy = sequence_gradient(first);
    const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
    first.emplace_back([this, dy, dx] {
      check(cudnnRNNBackwardData_v8(device()->dnn.get(), rnn_.get(), lengths(), y_.get(), sequence_.data(),
                                    dy.data(), x_.get(), dx.data(), state_.get(), nullptr, nullptr, nullptr,
                                    cell(), nullptr, nullptr, nullptr, weight_bytes_, weights_.get(),
                                    work_bytes_, device()->workspace.data(), reserve_bytes_, reserve_.get()),
            "cudnnRNNBackwardData_v8");
    });
    backward_weights_.emplace_back([this] { compute_weights(); });
    for (std::size_t i = 0; i < 3; ++i) {
      backward_weights_.emplace_back([this, i] {
        copy_segments(segments_[i].out_of(), weight_gradients_.get(), element(), parameter(i).gradient,
                      Element::f32, stream());
      });
    }
  }

  void compute_weights() const {
    check(cudaMemsetAsync(weight_gradients_.get(), 0, weight_bytes_, stream()), "cudaMemsetAsync");
    check(cudnnRNNBackwardWeights_v8(device()->dnn.get(), rnn_.get(), CUDNN_WGRAD_MODE_ADD, lengths(),
                                     x_.get(), source_.data(), state_.get(), nullptr, y_.get(),
                                     sequence_.data(), weight_bytes_, weight_gradients_.get(), work_bytes_,
                                     device()->workspace.data(), reserve_bytes_, reserve_.get()),
          "cudnnRNNBackwardWeights_v8");
  }

  CudnnTensor source_, sequence_;
  DropoutDesc dropout_;
  RnnDesc rnn_;
  SequenceDesc x_, y_;
  TensorDesc state_;
  std::size_t weight_bytes_ = 0, work_bytes_ = 0, reserve_bytes_ = 0;
  std::shared_ptr<void> weights_, weight_gradients_, reserve_, lengths_;
  std::array<WeightSegments, 3> segments_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_recurrent(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Recurrent>(std::move(device), site);
}

}  // namespace stepcast::cudnn
