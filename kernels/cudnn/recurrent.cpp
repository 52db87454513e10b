#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/recurrent_weights.hpp"

namespace stepcast::cudnn {
namespace {

using DropoutDesc = Owned<cudnnDropoutDescriptor_t, cudnnDestroyDropoutDescriptor>;
using SequenceDesc = Owned<cudnnRNNDataDescriptor_t, cudnnDestroyRNNDataDescriptor>;

/// LSTM or GRU over whole sequences of equal length, one or both directions, from a state of zeros.
class Recurrent final : public CudnnLayer {
 public:
  Recurrent(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        source_(arranged(forward_, input(), Order::row_major)),
        sequence_(scratch({batch(), steps(), directions() * layer().hidden})) {
    for (std::size_t i = 0; i < layer().parameters.size(); ++i) add_parameter();
    describe_rnn();
    make_spaces();
    for (std::size_t i = 0; i < 3; ++i) {
      forward_.emplace_back([this, i] {
        move_pieces(pieces_[i].into(), parameter(i).value, Element::f32, weights_.get(), element(), stream());
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
  static int count(std::int64_t value) { return static_cast<int>(value); }
  cudnnTensorDescriptor_t cell() const { return layer().kind == LayerKind::lstm ? state_.get() : nullptr; }
  const std::int32_t* lengths() const { return static_cast<const std::int32_t*>(lengths_.get()); }

  /// As PyTorch asks for it: tensor cores by name for fp16, none for f32, else the library's default.
  cudnnMathType_t math() const {
    return element() == Element::bf16 ? CUDNN_DEFAULT_MATH : device()->cudnn_math();
  }

  void describe_rnn() {
    // No dropout inside; cuDNN wants its descriptor nevertheless.
    dropout_ = make_owned<DropoutDesc>(cudnnCreateDropoutDescriptor, "cudnnCreateDropoutDescriptor");
    check(cudnnSetDropoutDescriptor(dropout_.get(), device()->dnn.get(), 0, nullptr, 0, 0),
          "cudnnSetDropoutDescriptor");
    rnn_ = make_owned<RnnDesc>(cudnnCreateRNNDescriptor, "cudnnCreateRNNDescriptor");
    const auto hidden = static_cast<std::int32_t>(layer().hidden);
    check(cudnnSetRNNDescriptor_v8(
              rnn_.get(), CUDNN_RNN_ALGO_STANDARD, layer().kind == LayerKind::lstm ? CUDNN_LSTM : CUDNN_GRU,
              CUDNN_RNN_SINGLE_INP_BIAS, layer().bidirectional ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
              CUDNN_LINEAR_INPUT, device()->cudnn_type(), CUDNN_DATA_FLOAT, math(),
              static_cast<std::int32_t>(layer().input.back()), hidden, hidden, 1, dropout_.get(),
              CUDNN_RNN_PADDED_IO_ENABLED),
          "cudnnSetRNNDescriptor_v8");
    x_ = describe_sequence(layer().input.back());
    y_ = describe_sequence(directions() * layer().hidden);
    const CudnnTensor state = scratch({directions(), batch(), layer().hidden});
    state_ = describe(state, state.shape());
  }

  SequenceDesc describe_sequence(std::int64_t features) const {
    auto desc = make_owned<SequenceDesc>(cudnnCreateRNNDataDescriptor, "cudnnCreateRNNDataDescriptor");
    const std::vector<int> lengths(static_cast<std::size_t>(batch()), count(steps()));
    float padding = 0;  // of the data's type: zero bits are zero in all of them
    check(cudnnSetRNNDataDescriptor(desc.get(), device()->cudnn_type(),
                                    CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, count(steps()),
                                    count(batch()), count(features), lengths.data(), &padding),
          "cudnnSetRNNDataDescriptor");
    return desc;
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
      throw GpuError("cudnnGetRNNTempSpaceSizes: cuDNN needs more workspace than allowed");
    }
    device()->workspace.use(work_bytes_);
    const std::vector<std::int32_t> lengths(static_cast<std::size_t>(batch()), count(steps()));
    const std::size_t bytes = lengths.size() * sizeof(std::int32_t);
    lengths_ = allocate_bytes(bytes, stream());
    check(cudaMemcpyAsync(lengths_.get(), lengths.data(), bytes, cudaMemcpyHostToDevice, stream()),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    pieces_ = recurrent_weights(*device(), rnn_.get(), layer(), weights_.get(), weight_bytes_);
  }

  /// Null states are zeros before the first step and unwanted after the last.
  void compute() const {
    check(cudnnRNNForward(device()->dnn.get(), rnn_.get(), CUDNN_FWD_MODE_TRAINING, lengths(), x_.get(),
                          source_.data(), y_.get(), sequence_.data(), state_.get(), nullptr, nullptr, cell(),
                          nullptr, nullptr, weight_bytes_, weights_.get(), work_bytes_,
                          device()->workspace.data(), reserve_bytes_, reserve_.get()),
          "cudnnRNNForward");
  }

  /// The part of the sequence in which a direction ends, and its part of the {batch, directions x hidden}
  /// output: the forward one ends at the last step, the backward one at the first.
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

  /// The gradient of the whole sequence: zero but for the last states if only they are used.
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

  /// The gradients of the weights need what the pass over the data leaves in the reserve.
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
        move_pieces(pieces_[i].out_of(), weight_gradients_.get(), element(), parameter(i).gradient,
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
  std::array<WeightPieces, 3> pieces_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_recurrent(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Recurrent>(std::move(device), site);
}

}  // namespace stepcast::cudnn
