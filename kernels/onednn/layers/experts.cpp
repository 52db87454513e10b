#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/onednn/layers/expert_rows.hpp"
#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
namespace {

/// An expert that a token visits.
struct Visit {
  std::int64_t expert = 0;
  std::int64_t row = 0;  ///< in the block of the device that has the expert
  float gate = 0;        ///< weight of the expert's output
  float error = 0;       ///< gradient of the router's score
};

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

/// A router, whose scores are products with the token, and experts, each a SwiGLU block. A token visits the
/// experts of its highest scores; the softmax of these weighs their outputs. No expert refuses a token. Each
/// of several devices that share the experts has its own tokens and router, and as many of the experts; rows
/// go to the devices of their experts and come back. Source: A. Q. Jiang et al., "Mixtral of experts",
/// arXiv:2401.04088, section 2.
class Experts final : public OnednnLayer {
 public:
  Experts(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        tokens_(element_count(input().shape()) / input().shape().back()),
        features_(input().shape().back()),
        hidden_(layer().hidden),
        own_(layer().experts),
        shape_{ways(), place(), own_, features_, tokens_ * std::min(layer().top, own_)},
        visits_(tokens_ * layer().top),
        to_experts_(shape_),
        from_experts_(shape_),
        errors_to_experts_(shape_),
        errors_from_experts_(shape_),
        rows_(shape_) {
    for (const ParameterTensor& tensor : layer().parameters)
      add_parameter(plain(tensor.shape), plain(tensor.shape));
    x_ = data_of(reordered(routing_, input().memory(), plain(input().shape())));
    y_ = make_output(plain(batched(layer().output))).data();
    forward_.emplace_back([this] { run_pass(Pass::forward); });
    backward_weights_.emplace_back([this] { sum_weights(); });
  }

  std::span<float> exchanged_rows(Pass pass) override {
    const bool forward = pass == Pass::forward;
    State& state = forward ? forward_state_ : backward_state_;
    if (state == State::computed) return (forward ? from_experts_ : errors_from_experts_).all();
    prepare(pass, state);
    return (forward ? to_experts_ : errors_to_experts_).all();
  }
  void defer_sums() override { exchanges_ = true; }
  void finish(Pass pass) override {
    State& state = pass == Pass::forward ? forward_state_ : backward_state_;
    if (state != State::computed) return;  // the rows have only arrived at their experts
    state = State::idle;
    pass == Pass::forward ? combine() : sum_errors();
  }

 private:
  /// What has been done of a pass.
  enum class State { idle, prepared, computed };

  static float* data_of(const dnnl::memory& memory) { return static_cast<float*>(memory.get_data_handle()); }
  bool is_shared() const {
    return site().share != nullptr && site().share->form == LayerShare::Form::experts;
  }
  int ways() const { return is_shared() ? site().share->ways : 1; }
  int place() const { return is_shared() ? site().share->place : 0; }

  void connect() override {
    y_errors_ = data_of(output_gradient(weighing_, output_desc()));
    if (wanted()) x_errors_ = make_input_gradient(plain(input().shape())).data();
    backward_data_.emplace_back([this] { run_pass(Pass::backward_data); });
  }

  void prepare(Pass pass, State& state) {
    if (state != State::idle) return;
    for (const auto& step : pass == Pass::forward ? routing_ : weighing_) step();
    pass == Pass::forward ? dispatch() : dispatch_errors();
    state = State::prepared;
  }

  void run_pass(Pass pass) {
    State& state = pass == Pass::forward ? forward_state_ : backward_state_;
    prepare(pass, state);
    pass == Pass::forward ? run_experts() : run_experts_backward();
    state = State::computed;
    if (!exchanges_) finish(pass);
  }

  /// Chooses the experts of a token. Of equal scores, that of the first expert is higher.
  void route(const std::vector<float>& scores, Visit* visits) const {
    const std::int64_t top = layer().top;
    std::vector<std::int64_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + top, order.end(), [&](std::int64_t a, std::int64_t b) {
      return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
    });
    float sum = 0;
    for (std::int64_t i = 0; i < top; ++i) {
      visits[i] = {order[i], 0, std::exp(scores[order[i]] - scores[order[0]]), 0};
      sum += visits[i].gate;
    }
    for (std::int64_t i = 0; i < top; ++i) visits[i].gate /= sum;
  }

  /// Routes all tokens and copies their rows into the blocks of the experts' devices.
  void dispatch() {
    const std::int64_t all = own_ * shape_.ways, top = layer().top;
    scores_.resize(tokens_ * all);
    dnnl::sgemm('N', 'T', tokens_, all, features_, 1, x_, features_, parameter(0).data(), features_, 0,
                scores_.data(), all);
    std::vector<std::int64_t> rows(all, 0);
    for (std::int64_t token = 0; token < tokens_; ++token) {
      const auto first = scores_.begin() + token * all;
      route({first, first + all}, &visits_[token * top]);
      for (std::int64_t i = 0; i < top; ++i) ++rows[visits_[token * top + i].expert];
    }
    to_experts_.begin_sends(rows);
    std::vector<std::int64_t> next = first_rows(rows);
    for (std::size_t i = 0; i < visits_.size(); ++i) {
      Visit& visit = visits_[i];
      visit.row = next[visit.expert]++;
      std::copy_n(x_ + static_cast<std::int64_t>(i) / top * features_, features_,
                  to_experts_.sent(device_of(visit), visit.row));
    }
  }

  /// The first row of each expert in the block of its device.
  std::vector<std::int64_t> first_rows(const std::vector<std::int64_t>& rows) const {
    std::vector<std::int64_t> first(rows.size(), 0);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const bool is_first = static_cast<std::int64_t>(i) % own_ == 0;
      first[i] = is_first ? 0 : first[i - 1] + rows[i - 1];
    }
    return first;
  }

  int device_of(const Visit& visit) const { return visit.expert / own_; }

  void run_experts() {
    rows_.count(to_experts_);
    rows_.gather(to_experts_, x_rows_);
    gates_.resize(rows_.total() * 2 * hidden_);
    products_.resize(rows_.total() * hidden_);
    y_rows_.resize(rows_.total() * features_);
    for (std::int64_t expert = 0; expert < own_; ++expert) run_expert(expert);
    rows_.scatter(y_rows_, to_experts_, from_experts_);
  }

  void run_expert(std::int64_t expert) {
    const std::int64_t first = rows_.first(expert), rows = rows_.of(expert);
    if (rows == 0) return;
    dnnl::sgemm('N', 'T', rows, 2 * hidden_, features_, 1, &x_rows_[first * features_], features_,
                hidden_weight(expert), features_, 0, &gates_[first * 2 * hidden_], 2 * hidden_);
    for (std::int64_t row = first; row < first + rows; ++row) {
      const float* gate = &gates_[row * 2 * hidden_];
      for (std::int64_t i = 0; i < hidden_; ++i)
        products_[row * hidden_ + i] = gate[i] * sigmoid(gate[i]) * gate[hidden_ + i];
    }
    dnnl::sgemm('N', 'T', rows, features_, hidden_, 1, &products_[first * hidden_], hidden_,
                output_weight(expert), hidden_, 0, &y_rows_[first * features_], features_);
  }

  /// Adds up the outputs of each token's experts.
  void combine() {
    std::fill_n(y_, tokens_ * features_, 0.F);
    for (std::size_t i = 0; i < visits_.size(); ++i) {
      const Visit& visit = visits_[i];
      const float* row = from_experts_.received(device_of(visit), visit.row);
      float* y = y_ + static_cast<std::int64_t>(i) / layer().top * features_;
      for (std::int64_t k = 0; k < features_; ++k) y[k] += visit.gate * row[k];
    }
  }

  /// Weighs the error signals of the experts' outputs, and finds those of the router's scores.
  void dispatch_errors() {
    errors_to_experts_.copy_counts_of_sends(to_experts_);
    const std::int64_t top = layer().top;
    for (std::int64_t token = 0; token < tokens_; ++token) {
      Visit* const visits = &visits_[token * top];
      const float* const error = y_errors_ + token * features_;
      float mean = 0;
      for (std::int64_t i = 0; i < top; ++i) {
        const float* row = from_experts_.received(device_of(visits[i]), visits[i].row);
        float* to = errors_to_experts_.sent(device_of(visits[i]), visits[i].row);
        for (std::int64_t k = 0; k < features_; ++k) to[k] = visits[i].gate * error[k];
        visits[i].error = std::inner_product(row, row + features_, error, 0.F);
        mean += visits[i].gate * visits[i].error;
      }
      for (std::int64_t i = 0; i < top; ++i) visits[i].error = visits[i].gate * (visits[i].error - mean);
    }
  }

  void run_experts_backward() {
    rows_.gather(errors_to_experts_, y_row_errors_);
    gate_errors_.resize(gates_.size());
    product_errors_.resize(products_.size());
    x_row_errors_.resize(x_rows_.size());
    for (std::int64_t expert = 0; expert < own_; ++expert) run_expert_backward(expert);
    if (wanted()) rows_.scatter(x_row_errors_, to_experts_, errors_from_experts_);
  }

  void run_expert_backward(std::int64_t expert) {
    const std::int64_t first = rows_.first(expert), rows = rows_.of(expert);
    if (rows == 0) return;
    dnnl::sgemm('N', 'N', rows, hidden_, features_, 1, &y_row_errors_[first * features_], features_,
                output_weight(expert), hidden_, 0, &product_errors_[first * hidden_], hidden_);
    for (std::int64_t row = first; row < first + rows; ++row) {
      const float* gate = &gates_[row * 2 * hidden_];
      float* error = &gate_errors_[row * 2 * hidden_];
      for (std::int64_t i = 0; i < hidden_; ++i) {
        const float s = sigmoid(gate[i]), product = product_errors_[row * hidden_ + i];
        error[i] = product * gate[hidden_ + i] * s * (1 + gate[i] * (1 - s));
        error[hidden_ + i] = product * gate[i] * s;
      }
    }
    if (!wanted()) return;
    dnnl::sgemm('N', 'N', rows, features_, 2 * hidden_, 1, &gate_errors_[first * 2 * hidden_], 2 * hidden_,
                hidden_weight(expert), features_, 0, &x_row_errors_[first * features_], features_);
  }

  /// Adds up the error signals that each token has from its experts and from the router.
  void sum_errors() {
    if (!wanted()) return;
    std::fill_n(x_errors_, tokens_ * features_, 0.F);
    for (std::size_t i = 0; i < visits_.size(); ++i) {
      const Visit& visit = visits_[i];
      const float* row = errors_from_experts_.received(device_of(visit), visit.row);
      const float* weight = parameter(0).data() + visit.expert * features_;
      float* error = x_errors_ + static_cast<std::int64_t>(i) / layer().top * features_;
      for (std::int64_t k = 0; k < features_; ++k) error[k] += row[k] + visit.error * weight[k];
    }
  }

  void sum_weights() {
    std::fill_n(parameter(0).gradient_data(), elements(layer().parameters[0].shape), 0.F);
    for (std::size_t i = 0; i < visits_.size(); ++i) {
      const float* x = x_ + static_cast<std::int64_t>(i) / layer().top * features_;
      float* sum = parameter(0).gradient_data() + visits_[i].expert * features_;
      for (std::int64_t k = 0; k < features_; ++k) sum[k] += visits_[i].error * x[k];
    }
    for (std::int64_t expert = 0; expert < own_; ++expert) sum_expert_weights(expert);
  }

  void sum_expert_weights(std::int64_t expert) {
    const std::int64_t first = rows_.first(expert), rows = rows_.of(expert), size = hidden_ * features_;
    float* const output = parameter(2).gradient_data() + expert * size;
    float* const hidden = parameter(1).gradient_data() + expert * 2 * size;
    if (rows == 0) {
      std::fill_n(output, size, 0.F);
      std::fill_n(hidden, 2 * size, 0.F);
      return;
    }
    dnnl::sgemm('T', 'N', features_, hidden_, rows, 1, &y_row_errors_[first * features_], features_,
                &products_[first * hidden_], hidden_, 0, output, hidden_);
    dnnl::sgemm('T', 'N', 2 * hidden_, features_, rows, 1, &gate_errors_[first * 2 * hidden_], 2 * hidden_,
                &x_rows_[first * features_], features_, 0, hidden, features_);
  }

  const float* hidden_weight(std::int64_t expert) const {
    return parameter(1).data() + expert * 2 * hidden_ * features_;
  }
  const float* output_weight(std::int64_t expert) const {
    return parameter(2).data() + expert * hidden_ * features_;
  }

  std::int64_t tokens_, features_, hidden_, own_;
  ExpertRowsShape shape_;
  Steps routing_, weighing_;  ///< what comes before the rows are copied, forward and backward
  const float* x_ = nullptr;
  const float* y_errors_ = nullptr;
  float *y_ = nullptr, *x_errors_ = nullptr;
  std::vector<Visit> visits_;  ///< of each token
  std::vector<float> scores_;
  ExpertRowBlocks to_experts_, from_experts_, errors_to_experts_, errors_from_experts_;
  RowsByExpert rows_;
  /// Arrays with one row for each row of the own experts: inputs, gates and hidden units, products of these,
  /// outputs, and the error signals of each.
  std::vector<float> x_rows_, gates_, products_, y_rows_;
  std::vector<float> x_row_errors_, gate_errors_, product_errors_, y_row_errors_;
  State forward_state_ = State::idle, backward_state_ = State::idle;
  bool exchanges_ = false;  ///< rows are exchanged before and after the experts
};

}  // namespace

std::unique_ptr<LayerKernel> make_experts(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Experts>(std::move(library), site);
}

}  // namespace stepcast::onednn
