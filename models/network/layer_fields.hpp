#pragma once

#include <cstdint>
#include <optional>

#include "core/yaml.hpp"
#include "models/network/layer.hpp"

namespace stepcast {

/// The keys of a layer as written, of all kinds. Those whose range depends on the layer's input are read by
/// its reader.
struct LayerKeys {
  std::int64_t filters = 1, groups = 1;                ///< convolutions
  std::int64_t units = 1;                              ///< dense
  bool bias = true;                                    ///< of convolutions, dense, state_space
  std::int64_t rows = 1, columns = 1;                  ///< embedding
  std::int64_t hidden = 1;                             ///< recurrent layers, experts
  bool bidirectional = false, last_step_only = false;  ///< recurrent layers
  std::int64_t heads = 1;                              ///< attention, rotary_embedding, state_space
  bool causal = false;                                 ///< attention
  double dropout = 0;                                  ///< attention
  std::optional<std::int64_t> position_bias;           ///< attention
  std::int64_t state = 1, chunk = 256, taps = 4;       ///< state_space
  std::int64_t experts = 1;                            ///< experts
  bool trained = true;                                 ///< position_embedding
  std::int64_t unused = 0;                             ///< class_token
  bool affine = true;                                  ///< layer_norm
  std::int64_t first = 0;                              ///< slice
  double slope = 0.01, alpha = 1, rate = 0;            ///< leaky_relu; elu; dropout
};

/// Reads the keys of a layer of this kind. @throws InputError, also for a key of another kind
YamlMap read_layer_keys(const YamlValue& value, LayerKind kind, LayerKeys& keys);

}  // namespace stepcast
