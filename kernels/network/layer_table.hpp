#pragma once

#include "kernels/network/backend.hpp"

namespace stepcast {

/// One entry per family of layers, such as the function of a backend that makes their kernels. A
/// value-initialized entry (a null function) says that the family is not supported.
template <class Entry>
struct LayerTable {
  Entry convolution{}, dense{}, embedding{}, batch_norm{}, layer_norm{}, activation{}, pool{}, add{},
      up_sample{}, reshape{}, dropout{}, recurrent{}, attention{}, softmax_loss{}, element_loss{};
  /// Layers that compute with data of other ranks.
  Entry spatial_convolution{}, spatial_pool{}, synchronized_batch_norm{}, vocab_parallel_loss{};

  /// The entry for a layer that one rank computes alone.
  constexpr Entry of(LayerKind kind) const {
    switch (kind) {
      case LayerKind::convolution:
        return convolution;
      case LayerKind::dense:
        return dense;
      case LayerKind::embedding:
        return embedding;
      case LayerKind::batch_norm:
        return batch_norm;
      case LayerKind::layer_norm:
        return layer_norm;
      case LayerKind::relu:
      case LayerKind::leaky_relu:
      case LayerKind::sigmoid:
      case LayerKind::tanh:
      case LayerKind::elu:
      case LayerKind::gelu:
        return activation;
      case LayerKind::max_pool:
      case LayerKind::average_pool:
        return pool;
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
    if (site.layer->kv_heads > 0 || site.layer->weight_of >= 0)
      return Entry{};  // grouped heads, tied weights
    if (kind == LayerKind::batch_norm && site.statistics_count > 0) return synchronized_batch_norm;
    if (kind == LayerKind::softmax_cross_entropy && site.share != nullptr) return vocab_parallel_loss;
    if (site.rows != nullptr && kind == LayerKind::convolution) return spatial_convolution;
    const bool pools = kind == LayerKind::average_pool || kind == LayerKind::max_pool;
    return site.rows != nullptr && pools ? spatial_pool : of(kind);
  }
};

/// The reason why no backend can compute the network: its first layer without a kernel; empty if each has
/// one. A backend may lack more kinds.
std::string lacking_kernel(const Model& model);

/// The form of a layer that no backend has kernels for, though they have kernels for its kind; empty if there
/// is none.
inline const char* lacking_form(const Layer& layer) {
  if (layer.kv_heads > 0) return " with kv_heads";
  return layer.weight_of >= 0 ? " with weight_of" : "";
}

}  // namespace stepcast
