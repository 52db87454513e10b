#pragma once

#include "core/units.hpp"
#include "models/device.hpp"
#include "models/model.hpp"

namespace stepcast {

/// How a training process stores a network; the defaults are those of LBANN (docs/memory.md).
struct MemoryOptions {
  enum class Precision {
    f32,    ///< everything 4 B
    mixed,  ///< activations, error signals and gradients 2 B; weights 2 B and a 4 B master copy
  };
  enum class Optimizer {
    sgd,
    momentum,
    adagrad,
    rmsprop,
    adam
  };  ///< 0, 1, 1, 1, 2 copies of the weights, 4 B
  enum class Activations {
    out_of_place,
    in_place
  };  ///< in_place: ReLU and other element-wise layers overwrite
  enum class ErrorSignals {
    kept,   ///< one of every layer's output and of the input, as LBANN holds them
    freed,  ///< as soon as used: only the live ones at the worst moment of the backward pass
  };
  enum class Recomputation {
    none,
    blocks,       ///< keep the outputs of additions and pools, compute the rest again
    square_root,  ///< keep the output of every sqrt(layers)-th layer
  };

  std::int64_t batch = 1;
  int split = 1;  ///< devices that share every sample (spatial parallelism): each has the weights, and
                  ///< 1/split of the rest
  Precision precision = Precision::f32;
  Optimizer optimizer = Optimizer::momentum;
  Activations activations = Activations::out_of_place;
  ErrorSignals error_signals = ErrorSignals::kept;
  Recomputation recomputation = Recomputation::none;
  Bytes workspace;  ///< of the kernel library, as it asks for
};

/// What one device holds while it trains.
struct Memory {
  Bytes weights;  ///< with running statistics, and the master copy of mixed precision
  Bytes gradients;
  Bytes optimizer_state;
  Bytes activations;    ///< outputs of all layers kept for the backward pass
  Bytes error_signals;  ///< derivatives of the loss by outputs
  Bytes input;          ///< one mini-batch
  Bytes workspace;

  Bytes total() const;
};

Memory training_memory(const Model& model, const MemoryOptions& options);

/// Whether the total and a margin fit into what a process can allocate.
/// @param margin  share of the total added for fragmentation and small buffers
bool fits(const Memory& memory, const Device& device, double margin = 0);

}  // namespace stepcast
