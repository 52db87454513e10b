#pragma once

#include "kernels/onednn/tensor.hpp"

namespace stepcast::onednn {

/// The arrays of an RNN primitive as descriptors; states after the last step are unused. The state before the
/// first is given, although it is zero: without it oneDNN 2.6.3 gets the gradient of an LSTM's recurrent
/// weights wrong.
struct RnnDescs {
  dnnl::rnn_direction direction;
  Desc x, state, weight_input, weight_hidden, bias, y;
};

// oneDNN's LSTM and GRU differ in the states that their constructors take.
// Gates: lstm i, f, g, o; gru u, r, o, with reset after the recurrent product ("linear before reset", as
// cuDNN).

struct LstmCell {
  using Forward = dnnl::lstm_forward;
  using Backward = dnnl::lstm_backward;
  static constexpr std::int64_t kGates = 4, kBiases = 4;

  static Forward::desc forward(const RnnDescs& d) {
    return {dnnl::prop_kind::forward_training,
            d.direction,
            d.x,
            d.state,
            d.state,
            d.weight_input,
            d.weight_hidden,
            d.bias,
            d.y,
            Desc(),
            Desc()};
  }
  static Backward::desc backward(const RnnDescs& d) {
    return {dnnl::prop_kind::backward,
            d.direction,
            d.x,
            d.state,
            d.state,
            d.weight_input,
            d.weight_hidden,
            d.bias,
            d.y,
            Desc(),
            Desc(),
            d.x,
            d.state,
            d.state,
            d.weight_input,
            d.weight_hidden,
            d.bias,
            d.y,
            Desc(),
            Desc()};
  }
};

struct GruCell {
  using Forward = dnnl::lbr_gru_forward;
  using Backward = dnnl::lbr_gru_backward;
  static constexpr std::int64_t kGates = 3,
                                kBiases = 4;  // the fourth stands inside the product with reset; zero here

  static Forward::desc forward(const RnnDescs& d) {
    return {dnnl::prop_kind::forward_training,
            d.direction,
            d.x,
            d.state,
            d.weight_input,
            d.weight_hidden,
            d.bias,
            d.y,
            Desc()};
  }
  static Backward::desc backward(const RnnDescs& d) {
    return {dnnl::prop_kind::backward,
            d.direction,
            d.x,
            d.state,
            d.weight_input,
            d.weight_hidden,
            d.bias,
            d.y,
            Desc(),
            d.x,
            d.state,
            d.weight_input,
            d.weight_hidden,
            d.bias,
            d.y,
            Desc()};
  }
};

}  // namespace stepcast::onednn
