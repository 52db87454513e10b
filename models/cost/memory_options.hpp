#pragma once

#include <cstdint>
#include <optional>

#include "core/units.hpp"

namespace stepcast {

/// Options of the memory that a training process uses for a network (docs/explanation/memory.md). The default
/// is LBANN's rule, which is also that of stepcast's own kernels; the default of scenarios is PyTorch's
/// (scenarios/experiment).
struct MemoryOptions {
  enum class Framework {
    pytorch,     ///< saved tensors of autograd, error signals freed after use, caching allocator
    tensorflow,  ///< the same walk with the tensors that TensorFlow's gradients read
    lbann,       ///< every output is held
  };
  enum class Attention {
    eager,  ///< the scores are held
    flash,  ///< one number for each row of scores is held
  };
  enum class Precision {
    f32,    ///< everything 4 B
    mixed,  ///< activations, error signals and gradients 2 B; weights 2 B and a 4 B master copy. pytorch:
            ///< autocast, see output_widths
  };
  enum class Optimizer {
    sgd,       ///< no state
    momentum,  ///< 1 copy of the weights, 4 B each
    adagrad,   ///< 1 copy
    rmsprop,   ///< 1 copy
    adam,      ///< 2 copies
  };
  enum class Activations {
    out_of_place,
    in_place,  ///< ReLU and other element-wise layers overwrite their input
  };
  enum class ErrorSignals {
    kept,   ///< error signals of every output and of the input are kept, as in LBANN
    freed,  ///< freed after the last use: the most that are live at once in the backward pass
  };
  enum class Recomputation {
    none,
    blocks,       ///< keep the outputs of additions and pools, recompute the rest
    square_root,  ///< keep the output of every sqrt(layers)-th layer
  };

  /// Arrays that are partitioned among `zero_ways` data-parallel devices. Each stage includes the stages
  /// before it. Source: S. Rajbhandari, J. Rasley, O. Ruwase, Y. He, "ZeRO: memory optimizations toward
  /// training trillion parameter models", SC 2020, section 5.
  enum class Zero {
    none,
    optimizer_state,  ///< stage 1; includes the master copy of mixed precision
    gradients,        ///< stage 2
    parameters,       ///< stage 3; each layer is gathered while it runs
  };

  Framework framework = Framework::lbann;
  Attention attention = Attention::eager;  ///< pytorch and tensorflow
  /// Gradients are copied into buckets of their own (DistributedDataParallel with gradient_as_bucket_view:
  /// false). Only `pytorch` has it.
  bool bucket_copies = false;
  std::int64_t batch = 1;  ///< samples at once: those of a micro-batch, if there are several
  int split = 1;  ///< devices that share every sample (spatial parallelism): each holds all weights, and
                  ///< 1/split of the rest (activations, error signals, input)
  Precision precision = Precision::f32;
  Optimizer optimizer = Optimizer::momentum;
  Activations activations = Activations::out_of_place;
  ErrorSignals error_signals = ErrorSignals::kept;  ///< only lbann
  Recomputation recomputation = Recomputation::none;
  int in_flight = 1;  ///< micro-batches whose activations are held at once (pipelines)
  Zero zero = Zero::none;
  int zero_ways = 1;
  /// Activations are swapped to host memory until the backward pass (swapped_working_set).
  bool swap = false;
  /// Workspace of the kernel library. Without a value lbann has none, and pytorch and tensorflow have that of
  /// framework_memory.hpp.
  std::optional<Bytes> workspace;
};

}  // namespace stepcast
