#include <algorithm>
#include <cmath>

#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {

namespace {

constexpr float kMasked = -1e30f;  // its exponential is 0

/// softmax(Q K^T / sqrt(d)) V for every sample and head. Products are oneDNN's sgemm on strided views; the
/// probabilities of the forward pass are kept for the backward pass. A device with LayerShare::Form::queries
/// has the queries of some tokens, and reads keys and values of all tokens from a second input.
class Attention final : public OnednnLayer {
 public:
  Attention(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        gathers_(site.share != nullptr),
        queries_(layer().input.front()),
        tokens_(site.inputs.back()->shape()[1]),
        width_(layer().output.back()),
        size_(width_ / layer().heads),
        blocks_(batch() * layer().heads),
        source_(data_of(reordered(forward_, input().memory(), plain(input().shape())))),
        keys_(gathers_ ? data_of(reordered(forward_, input(1).memory(), plain(input(1).shape()))) : source_),
        softmax_({dnnl::prop_kind::forward_training, rows(), 1}, engine()),
        scores_(scratch(rows())),
        probabilities_(scratch(rows())) {
    find_visible();
    float* output = make_output(plain(batched(layer().output))).data();
    forward_.emplace_back([this] { compute_scores(); });
    call(forward_, dnnl::softmax_forward(softmax_),
         {{DNNL_ARG_SRC, scores_}, {DNNL_ARG_DST, probabilities_}});
    forward_.emplace_back([this, output] { mix_values(output); });
  }

 private:
  static float* data_of(const dnnl::memory& memory) { return static_cast<float*>(memory.get_data_handle()); }
  Desc rows() const { return plain({blocks_ * queries_, tokens_}); }
  float scale() const { return 1 / std::sqrt(static_cast<float>(size_)); }

  /// For each query, the number of keys that its token sees.
  void find_visible() {
    std::vector<Rows> tokens{{0, queries_}};
    if (gathers_) tokens = site().share->tokens;
    for (const Rows& run : tokens) {
      for (std::int64_t token = run.first; token < run.last; ++token)
        visible_.push_back(layer().causal ? token + 1 : tokens_);
    }
  }

  std::int64_t row_length() const { return 3 * width_; }
  std::int64_t key_row_length() const { return gathers_ ? 2 * width_ : 3 * width_; }
  /// Index of the first query of a block, which is one sample and head.
  std::int64_t query(std::int64_t block) const {
    const std::int64_t sample = block / layer().heads, head = block % layer().heads;
    return sample * queries_ * row_length() + head * size_;
  }
  /// Index of the first key (part 0) or value (1) of a block.
  std::int64_t key(std::int64_t block, std::int64_t which) const {
    const std::int64_t sample = block / layer().heads, head = block % layer().heads;
    return sample * tokens_ * key_row_length() + (which + (gathers_ ? 0 : 1)) * width_ + head * size_;
  }
  std::int64_t out(std::int64_t block) const {
    const std::int64_t sample = block / layer().heads, head = block % layer().heads;
    return sample * queries_ * width_ + head * size_;
  }
  std::int64_t square(std::int64_t block) const { return block * queries_ * tokens_; }

  void compute_scores() {
    float* scores = data_of(scores_);
#pragma omp parallel for schedule(static)
    for (std::int64_t b = 0; b < blocks_; ++b) {
      dnnl::sgemm('N', 'T', queries_, tokens_, size_, scale(), source_ + query(b), row_length(),
                  keys_ + key(b, 0), key_row_length(), 0, scores + square(b), tokens_);
      if (!layer().causal) continue;
      for (std::int64_t i = 0; i < queries_; ++i) {
        float* row = scores + square(b) + i * tokens_;
        std::fill(row + visible_[i], row + tokens_, kMasked);
      }
    }
  }

  void mix_values(float* output) {
    const float* p = data_of(probabilities_);
#pragma omp parallel for schedule(static)
    for (std::int64_t b = 0; b < blocks_; ++b) {
      dnnl::sgemm('N', 'N', queries_, size_, tokens_, 1, p + square(b), tokens_, keys_ + key(b, 1),
                  key_row_length(), 0, output + out(b), width_);
    }
  }

  void connect() override {
    if (!wanted()) return;
    const float* dy = data_of(output_gradient(backward_data_, output_desc()));
    float* dx = make_input_gradient(plain(input().shape())).data();
    float* dk = gathers_ ? make_input_gradient(plain(input(1).shape()), 1).data() : dx;
    backward_data_.emplace_back([this, dy, dx, dk] {
#pragma omp parallel for schedule(static)
      for (std::int64_t b = 0; b < blocks_; ++b) block_back(b, dy + out(b), dx, dk);
    });
  }

  /// The memory of the scores, which are no longer needed, holds their gradient.
  void block_back(std::int64_t b, const float* dy, float* dx, float* dk) {
    const float* p = data_of(probabilities_) + square(b);
    float* ds = data_of(scores_) + square(b);
    dnnl::sgemm('N', 'T', queries_, tokens_, size_, 1, dy, width_, keys_ + key(b, 1), key_row_length(), 0, ds,
                tokens_);
    dnnl::sgemm('T', 'N', tokens_, size_, queries_, 1, p, tokens_, dy, width_, 0, dk + key(b, 1),
                key_row_length());
    for (std::int64_t row = 0; row < queries_; ++row) softmax_back(p + row * tokens_, ds + row * tokens_);
    dnnl::sgemm('N', 'N', queries_, size_, tokens_, 1, ds, tokens_, keys_ + key(b, 0), key_row_length(), 0,
                dx + query(b), row_length());
    dnnl::sgemm('T', 'N', tokens_, size_, queries_, 1, ds, tokens_, source_ + query(b), row_length(), 0,
                dk + key(b, 0), key_row_length());
  }

  void softmax_back(const float* p, float* row) const {
    float mean = 0;
    for (std::int64_t i = 0; i < tokens_; ++i) mean += p[i] * row[i];
    for (std::int64_t i = 0; i < tokens_; ++i) row[i] = scale() * p[i] * (row[i] - mean);
  }

  bool gathers_;  ///< whether keys and values are those of all tokens, and queries those of some
  std::int64_t queries_, tokens_, width_, size_, blocks_;
  const float *source_, *keys_;
  std::vector<std::int64_t> visible_;
  dnnl::softmax_forward::primitive_desc softmax_;
  dnnl::memory scores_, probabilities_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_attention(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Attention>(std::move(library), site);
}

namespace {

/// The arrays of an RNN primitive as descriptors. The states after the last step are unused. The state before
/// the first step is passed although it is zero: without it oneDNN 2.6.3 computes a wrong gradient of an
/// LSTM's recurrent weights.
struct RnnDescs {
  dnnl::rnn_direction direction;
  Desc x, state, weight_input, weight_hidden, bias, y;
};

// The constructors of oneDNN's LSTM take a cell state with each hidden state; those of its GRU do not.

/// Gates i, f, g, o.
struct LstmCell {
  using Forward = dnnl::lstm_forward;
  using Backward = dnnl::lstm_backward;
  static constexpr std::int64_t kGates = 4, kBiases = 4;

  static Forward::desc forward(const RnnDescs& d) {
    return Forward::desc(dnnl::prop_kind::forward_training, d.direction, d.x, d.state, d.state,
                         d.weight_input, d.weight_hidden, d.bias, d.y, Desc(), Desc());
  }

  static Backward::desc backward(const RnnDescs& d) {
    return Backward::desc(dnnl::prop_kind::backward, d.direction, d.x, d.state, d.state, d.weight_input,
                          d.weight_hidden, d.bias, d.y, Desc(), Desc(), d.x, d.state, d.state, d.weight_input,
                          d.weight_hidden, d.bias, d.y, Desc(), Desc());
  }
};

/// Gates u, r, o; the reset gate acts after the recurrent product ("linear before reset"), as in cuDNN.
/// oneDNN's fourth bias is added inside the product with the reset gate and is zero here.
struct GruCell {
  using Forward = dnnl::lbr_gru_forward;
  using Backward = dnnl::lbr_gru_backward;
  static constexpr std::int64_t kGates = 3, kBiases = 4;

  static Forward::desc forward(const RnnDescs& d) {
    return Forward::desc(dnnl::prop_kind::forward_training, d.direction, d.x, d.state, d.weight_input,
                         d.weight_hidden, d.bias, d.y, Desc());
  }

  static Backward::desc backward(const RnnDescs& d) {
    return Backward::desc(dnnl::prop_kind::backward, d.direction, d.x, d.state, d.weight_input,
                          d.weight_hidden, d.bias, d.y, Desc(), d.x, d.state, d.weight_input, d.weight_hidden,
                          d.bias, d.y, Desc());
  }
};

/// {batch, time, features} with time outermost in memory, as oneDNN's RNNs require; stacked layers keep this
/// layout.
Desc time_major(const Shape& shape) {
  return {shape, dnnl::memory::data_type::f32, Shape{shape[2], shape[0] * shape[2], 1}};
}

dnnl::memory as_time_batch(const dnnl::memory& memory) {
  const Shape s = dims_of(memory.get_desc());
  return {plain({s[1], s[0], s[2]}), memory.get_engine(), memory.get_data_handle()};
}

/// LSTM or GRU over a whole sequence, in one or both directions. For each direction, weights are stored as
/// {input, gates, hidden}, the layout of oneDNN's weight gradients.
template <class Cell>
class Recurrent final : public OnednnLayer {
 public:
  Recurrent(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        forward_desc_(Cell::forward(descs()), engine()),
        source_(reordered(forward_, input().memory(), time_major(input().shape()))),
        zero_state_(scratch(state_desc())),
        unused_gradient_(scratch(state_desc())),
        unused_cell_gradient_(scratch(state_desc())),
        bias_(scratch(bias_desc())),
        bias_gradient_(scratch(bias_desc())),
        sequence_(this->library(), time_major(sequence_shape())),
        workspace_(forward_desc_.workspace_desc(), engine()) {
    add_weights(features());
    add_weights(hidden());
    add_parameter(plain({directions(), Cell::kGates, hidden()}),
                  plain({directions(), Cell::kGates, hidden()}));
    forward_.emplace_back(
        [this] { copy_bias(parameter(2).data(), data_of(bias_), Cell::kGates, Cell::kBiases); });
    call(forward_, typename Cell::Forward(forward_desc_),
         {{DNNL_ARG_SRC_LAYER, as_time_batch(source_)},
          {DNNL_ARG_SRC_ITER, zero_state_},
          {DNNL_ARG_SRC_ITER_C, zero_state_},
          {DNNL_ARG_WEIGHTS_LAYER,
           reordered(forward_, parameter(0).value, forward_desc_.weights_layer_desc())},
          {DNNL_ARG_WEIGHTS_ITER, reordered(forward_, parameter(1).value, forward_desc_.weights_iter_desc())},
          {DNNL_ARG_BIAS, bias_},
          {DNNL_ARG_DST_LAYER, as_time_batch(sequence_.memory())},
          {DNNL_ARG_WORKSPACE, workspace_}});
    if (whole_sequence()) {
      share_output(std::make_shared<OnednnTensor>(sequence_));
    } else {
      const dnnl::memory last = make_output(plain(batched(layer().output))).memory();
      for (std::int64_t d = 0; d < directions(); ++d)
        copy(forward_, last_state(sequence_.memory(), d), half(last, d));
    }
  }

 private:
  std::int64_t steps() const { return layer().input.front(); }
  std::int64_t features() const { return layer().input.back(); }
  std::int64_t hidden() const { return layer().hidden; }
  std::int64_t directions() const { return layer().bidirectional ? 2 : 1; }
  bool whole_sequence() const { return layer().output.size() == 2; }
  Shape sequence_shape() const { return {batch(), steps(), directions() * hidden()}; }
  Desc bias_desc() const { return plain({1, directions(), Cell::kBiases, hidden()}); }
  Desc state_desc() const { return plain({1, directions(), batch(), hidden()}); }
  static float* data_of(const dnnl::memory& memory) { return static_cast<float*>(memory.get_data_handle()); }

  RnnDescs descs() const {
    return {layer().bidirectional ? dnnl::rnn_direction::bidirectional_concat
                                  : dnnl::rnn_direction::unidirectional_left2right,
            plain({steps(), batch(), features()}),
            state_desc(),
            any({1, directions(), features(), Cell::kGates, hidden()}),
            any({1, directions(), hidden(), Cell::kGates, hidden()}),
            bias_desc(),
            plain({steps(), batch(), directions() * hidden()})};
  }

  void add_weights(std::int64_t inputs) {
    const Shape dims{1, directions(), inputs, Cell::kGates, hidden()};
    const std::int64_t gate = hidden() * inputs;
    const Shape model_strides{directions() * Cell::kGates * gate, Cell::kGates * gate, 1, gate, inputs};
    add_parameter(plain(dims), Desc(dims, dnnl::memory::data_type::f32, model_strides));
  }

  /// Copies the biases of the model's gates, direction by direction.
  void copy_bias(const float* from, float* to, std::int64_t from_gates, std::int64_t to_gates) const {
    for (std::int64_t d = 0; d < directions(); ++d) {
      std::copy_n(from + d * from_gates * hidden(), Cell::kGates * hidden(), to + d * to_gates * hidden());
    }
  }

  dnnl::memory part(const dnnl::memory& memory, const Desc& whole, const Shape& offsets) const {
    return {whole.submemory_desc({1, batch(), hidden()}, offsets), engine(), memory.get_data_handle()};
  }
  /// The last state of a direction within the sequence: the forward one ends at the last step, the backward
  /// one at the first.
  dnnl::memory last_state(const dnnl::memory& sequence, std::int64_t d) const {
    return part(sequence, descs().y, {d == 0 ? steps() - 1 : 0, 0, d * hidden()});
  }
  /// The part of the {batch, directions x hidden} output that belongs to a direction.
  dnnl::memory half(const dnnl::memory& output, std::int64_t d) const {
    return part(output, plain({1, batch(), directions() * hidden()}), {0, 0, d * hidden()});
  }
  void copy(Steps& steps, const dnnl::memory& from, const dnnl::memory& to) const {
    call(steps, dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  /// The gradient of the whole sequence; zero except for the last states if only these are read.
  dnnl::memory sequence_gradient(Steps& pass) {
    if (whole_sequence()) return output_gradient(pass, sequence_.desc());
    const dnnl::memory last = output_gradient(pass, output_desc());
    dnnl::memory sequence = scratch(sequence_.desc());
    for (std::int64_t d = 0; d < directions(); ++d) copy(pass, half(last, d), last_state(sequence, d));
    return sequence;
  }

  void connect() override {
    const typename Cell::Backward::primitive_desc desc(Cell::backward(descs()), engine(), forward_desc_);
    Steps& pass = wanted() ? backward_data_ : backward_weights_;
    const dnnl::memory gradient = sequence_gradient(pass);
    const dnnl::memory input_weights = scratch(desc.diff_weights_layer_desc());
    const dnnl::memory hidden_weights = scratch(desc.diff_weights_iter_desc());
    pass.emplace_back([=, this] {  // because oneDNN adds to the gradients of the weights
      for (const dnnl::memory& sum : {input_weights, hidden_weights, bias_gradient_}) {
        std::fill_n(data_of(sum), sum.get_desc().get_size() / sizeof(float), 0.f);
      }
    });
    call(pass, typename Cell::Backward(desc),
         {{DNNL_ARG_SRC_LAYER, as_time_batch(source_)},
          {DNNL_ARG_SRC_ITER, zero_state_},
          {DNNL_ARG_SRC_ITER_C, zero_state_},
          {DNNL_ARG_DIFF_SRC_ITER, unused_gradient_},
          {DNNL_ARG_DIFF_SRC_ITER_C, unused_cell_gradient_},
          {DNNL_ARG_WEIGHTS_LAYER, reordered(pass, parameter(0).value, desc.weights_layer_desc())},
          {DNNL_ARG_WEIGHTS_ITER, reordered(pass, parameter(1).value, desc.weights_iter_desc())},
          {DNNL_ARG_BIAS, bias_},
          {DNNL_ARG_DST_LAYER, as_time_batch(sequence_.memory())},
          {DNNL_ARG_WORKSPACE, workspace_},
          {DNNL_ARG_DIFF_DST_LAYER, as_time_batch(gradient)},
          {DNNL_ARG_DIFF_SRC_LAYER, as_time_batch(make_input_gradient(source_.get_desc()).memory())},
          {DNNL_ARG_DIFF_WEIGHTS_LAYER, input_weights},
          {DNNL_ARG_DIFF_WEIGHTS_ITER, hidden_weights},
          {DNNL_ARG_DIFF_BIAS, bias_gradient_}});
    copy(pass, input_weights, parameter(0).gradient);
    copy(pass, hidden_weights, parameter(1).gradient);
    pass.emplace_back([this] {
      copy_bias(data_of(bias_gradient_), parameter(2).gradient_data(), Cell::kBiases, Cell::kGates);
    });
  }

  typename Cell::Forward::primitive_desc forward_desc_;
  dnnl::memory source_, zero_state_, unused_gradient_, unused_cell_gradient_, bias_, bias_gradient_;
  OnednnTensor sequence_;
  dnnl::memory workspace_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_recurrent(std::shared_ptr<Library> library, const LayerSite& site) {
  if (site.layer->kind == LayerKind::lstm)
    return std::make_unique<Recurrent<LstmCell>>(std::move(library), site);
  return std::make_unique<Recurrent<GruCell>>(std::move(library), site);
}

}  // namespace stepcast::onednn
