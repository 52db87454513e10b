#pragma once

#include <string>

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

  /// What is dealt out among `zero_ways` data-parallel devices, each with what the stages before it deal out.
  /// Source: S. Rajbhandari, J. Rasley, O. Ruwase, Y. He, "ZeRO: memory optimizations toward training
  /// trillion parameter models", SC 2020, section 5.
  enum class Zero {
    none,
    optimizer_state,  ///< stage 1; the master copy of mixed precision belongs to it
    gradients,        ///< stage 2
    parameters,       ///< stage 3: the layer at work is gathered
  };

  std::int64_t batch = 1;  ///< samples at once: of a micro-batch, where there are several
  int split = 1;  ///< devices that share every sample (spatial parallelism): each has the weights, and
                  ///< 1/split of the rest
  Precision precision = Precision::f32;
  Optimizer optimizer = Optimizer::momentum;
  Activations activations = Activations::out_of_place;
  ErrorSignals error_signals = ErrorSignals::kept;
  Recomputation recomputation = Recomputation::none;
  int in_flight = 1;  ///< micro-batches whose activations are held at once (pipelines)
  Zero zero = Zero::none;
  int zero_ways = 1;
  bool swap = false;  ///< activations wait for the backward pass in the host's memory (models/swapped.hpp)
  Bytes workspace;    ///< of the kernel library, as it asks for
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
  Bytes gathered;  ///< parameters of the largest layer, gathered to work on (ZeRO 3)
  Bytes swapped;   ///< activations in the host's memory, not in the total

  Bytes total() const;
};

Memory training_memory(const Model& model, const MemoryOptions& options);

/// Whether the total and a margin fit into what a process can allocate.
/// @param margin  share of the total added for fragmentation and small buffers
bool fits(const Memory& memory, const Device& device, double margin = 0);

/// Why it does not fit: "needs 17.1 GB a device, 16.5 GB usable: 0.6 GB too much; activations 8.4 GB, ...".
/// Empty if it does. Parts of 1 % of the total and more are named, the largest first.
std::string why_not(const Memory& memory, const Device& device, double margin = 0);

}  // namespace stepcast
