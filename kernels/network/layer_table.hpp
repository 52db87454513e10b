#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/network/backend.hpp"

namespace stepcast {

/// The form of a layer that no backend has kernels for, though they have kernels for its kind; empty if there
/// is none.
constexpr const char* lacking_form(const Layer& layer) {
  if (layer.kv_heads > 0) return " with kv_heads";
  if (layer.value_width > 0) return " with value_width";
  if (layer.kind == LayerKind::attention && layer.coefficient > 0) return " with dropout";
  if (layer.kind == LayerKind::attention && (layer.keys > 0 || layer.position_bias >= 0))
    return " with window, position_bias or inputs";
  if (layer.kind == LayerKind::layer_norm && layer.parameters.empty()) return " without scale and shift";
  if (layer.kind == LayerKind::position_embedding && !layer.parameters.empty() &&
      !layer.parameters.front().trainable)
    return " that is not trained";
  return layer.weight_of >= 0 ? " with weight_of" : "";
}

constexpr bool is_pool(LayerKind kind) {
  return kind == LayerKind::average_pool || kind == LayerKind::max_pool;
}

constexpr bool is_activation(LayerKind kind) {
  return kind == LayerKind::relu || kind == LayerKind::leaky_relu || kind == LayerKind::sigmoid ||
         kind == LayerKind::tanh || kind == LayerKind::elu || kind == LayerKind::gelu;
}

/// One entry per family of layers, such as the function of a backend that makes their kernels. A
/// value-initialized entry (a null function) says that the family is not supported.
template <class Entry>
struct LayerTable {
  Entry convolution{}, locally_connected{}, dense{}, embedding{}, position_embedding{}, class_token{},
      first_token{}, batch_norm{}, layer_norm{}, activation{}, pool{}, add{}, up_sample{}, reshape{},
      dropout{}, recurrent{}, attention{}, softmax_loss{}, element_loss{}, experts{};
  /// Layers that compute with data of other ranks.
  Entry spatial_convolution{}, spatial_locally_connected{}, spatial_pool{}, synchronized_batch_norm{},
      vocab_parallel_loss{};

  /// The entry for a layer that one rank computes alone.
  constexpr Entry of(LayerKind kind) const {
    if (is_pool(kind)) return pool;
    if (is_activation(kind)) return activation;
    switch (kind) {
      case LayerKind::convolution:
        return convolution;
      case LayerKind::locally_connected:
        return locally_connected;
      case LayerKind::dense:
        return dense;
      case LayerKind::embedding:
        return embedding;
      case LayerKind::position_embedding:
        return position_embedding;
      case LayerKind::class_token:
        return class_token;
      case LayerKind::first_token:
        return first_token;
      case LayerKind::batch_norm:
        return batch_norm;
      case LayerKind::layer_norm:
        return layer_norm;
      case LayerKind::add:
        return add;
      case LayerKind::up_sample:
        return up_sample;
      case LayerKind::reshape:
        return reshape;
      case LayerKind::dropout:
        return dropout;
      case LayerKind::lstm:
      case LayerKind::gru:
        return recurrent;
      case LayerKind::attention:
        return attention;
      case LayerKind::experts:
        return experts;
      case LayerKind::softmax_cross_entropy:
        return softmax_loss;
      case LayerKind::sigmoid_cross_entropy:
      case LayerKind::mean_squared_error:
        return element_loss;
      default:
        return Entry{};
    }
  }

  /// The entry for a layer at its place in a network, which may be partitioned over ranks.
  constexpr Entry of(const LayerSite& site) const {
    const LayerKind kind = site.layer->kind;
    if (*lacking_form(*site.layer) != '\0') return Entry{};
    if (kind == LayerKind::batch_norm && site.statistics_count > 0) return synchronized_batch_norm;
    if (kind == LayerKind::softmax_cross_entropy && site.share != nullptr) return vocab_parallel_loss;
    if (site.rows != nullptr && kind == LayerKind::convolution) return spatial_convolution;
    if (site.rows != nullptr && kind == LayerKind::locally_connected) return spatial_locally_connected;
    return site.rows != nullptr && is_pool(kind) ? spatial_pool : of(kind);
  }
};

/// The reason why no backend can compute the network: its first layer without a kernel; empty if each has
/// one. A backend may lack more kinds.
std::string lacking_kernel(const Model& model);

/// The calls that make up a pass, in order.
using Steps = std::vector<std::function<void()>>;

/// A layer whose passes are lists of calls. Each kind of layer fills `forward_` in its constructor and the
/// other two in `connect`; this class holds what does not depend on the library.
class ListedPasses : public LayerKernel {
 public:
  explicit ListedPasses(const LayerSite& site) : site_(site), layer_(*site.layer) {}

  bool has(Pass pass) const override { return pass != Pass::update && !steps_of(pass).empty(); }

  void run(Pass pass) override {
    run_interior(pass);
    run_border(pass);
  }
  void run_interior(Pass pass) override {
    for (const auto& step : steps_of(pass)) step();
  }
  void run_border(Pass pass) override {
    if (pass == Pass::backward_weights) return;
    for (const auto& step : pass == Pass::forward ? forward_border_ : backward_data_border_) step();
  }

  Tensor* targets() override { return nullptr; }
  double loss() const override { return 0; }

 protected:
  /// Builds the backward passes; `wanted` and the output's gradients are known.
  virtual void connect() = 0;

  const Layer& layer() const { return layer_; }
  const LayerSite& site() const { return site_; }
  std::int64_t batch() const { return site_.batch; }
  /// The shape {batch, sample...}.
  Shape batched(const Shape& sample) const { return stepcast::batched(site_.batch, sample); }
  /// True if the gradient of an input is needed.
  bool wanted(std::size_t input = 0) const { return wanted_.at(input); }

  /// Index of the parameter with this name in the model, or -1.
  int find_parameter(const std::string& name) const {
    for (std::size_t i = 0; i < layer_.parameters.size(); ++i) {
      if (layer_.parameters[i].name == name) return i;
    }
    return -1;
  }

  Steps forward_, backward_data_, backward_weights_;
  Steps forward_border_, backward_data_border_;  ///< what waits for halos, if it is separate
  std::vector<bool> wanted_;

 private:
  const Steps& steps_of(Pass pass) const {
    return pass == Pass::forward         ? forward_
           : pass == Pass::backward_data ? backward_data_
                                         : backward_weights_;
  }

  LayerSite site_;
  Layer layer_;
};

}  // namespace stepcast
