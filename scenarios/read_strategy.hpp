#pragma once

#include "core/yaml.hpp"
#include "strategies/conditions.hpp"
#include "strategies/synchronous.hpp"

namespace stepcast {

/// What `strategy:` says, for `kind: synchronous`.
struct StrategyOptions {
  Synchronous synchronous;
  Communication communication;
  Bytes bucket{26214400};       ///< gradients that travel together; 0: each array alone
  double compute_factor = 1;    ///< on all layer times
  bool half_gradients = false;  ///< gradients and activations of 2 bytes
};

StrategyOptions read_strategy(const YamlValue& value);

/// `noise:`
Noise read_noise(const YamlValue& value);

}  // namespace stepcast
