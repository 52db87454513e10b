#pragma once

#include "strategies/options/strategy.hpp"

namespace stepcast {

// Blocks of local SGD (local_sgd/block_training.hpp). The strategies differ in the filter only.

Strategy model_averaging_strategy();
Strategy bmuf_strategy();
Strategy diloco_strategy();

}  // namespace stepcast
