#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/typed_numbers.hpp"
#include "models/cost/kernel_choice.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// How recomputation treats a layer.
struct RecomputedLayer {
  int segment = 0;            ///< layers of a segment are computed again together; segments count up
  bool checkpointed = true;   ///< false: what the layer saves stays, and nothing is computed again
  double again = 1;           ///< share of the forward pass that is computed again
  double kept = 0;            ///< share of the output that is kept all the same
  bool keeps_inside = false;  ///< so is what only this layer saves
};

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
  /// What an optimizer keeps for each weight.
  enum class OptimizerState {
    sgd,       ///< no state
    momentum,  ///< 1 copy of the weights, 4 B each
    adagrad,   ///< 1 copy
    rmsprop,   ///< 1 copy
    adam,      ///< 2 copies
    adamw,     ///< 2 copies
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
    blocks,  ///< keep the outputs of additions and pools, recompute the rest
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
  KernelChoice::Gelu gelu =
      KernelChoice::Gelu::fused;  ///< pytorch and tensorflow: written out, each operator saves
  KernelChoice::Elementwise elementwise = KernelChoice::Elementwise::eager;         ///< pytorch
  KernelChoice::GradientSums gradient_sums = KernelChoice::GradientSums::separate;  ///< with fp32 gradients
  KernelChoice::CrossEntropy cross_entropy = KernelChoice::CrossEntropy::log_softmax;  ///< pytorch
  bool divided_vocabulary = false;  ///< pytorch: devices share the logits
  // What a program does with the logits that softmax with cross entropy reads. Only `pytorch` has these.
  bool keep_logits = true;   ///< it holds them to the end of the step, as `output = network(x)` does
  bool fp32_logits = false;  ///< under autocast it casts them to fp32 before the loss, as language models of
                             ///< Hugging Face do
  /// PyTorch before 1.11: softmax and its logarithm also save their input (pytorch/pytorch issue 64000, pull
  /// request 66018).
  bool softmax_input = false;
  /// Gradients are copied into buckets of their own (DistributedDataParallel with gradient_as_bucket_view:
  /// false). Only `pytorch` has it.
  bool bucket_copies = false;
  std::int64_t batch = 1;  ///< samples at once: those of a micro-batch, if there are several
  int split = 1;  ///< devices that share every sample (spatial parallelism): each holds all weights, and
                  ///< 1/split of the rest (activations, error signals, input)
  Precision precision = Precision::f32;
  OptimizerState optimizer = OptimizerState::momentum;
  Activations activations = Activations::out_of_place;
  ErrorSignals error_signals = ErrorSignals::kept;  ///< only lbann
  Recomputation recomputation = Recomputation::none;
  std::vector<RecomputedLayer> recomputed = {};  ///< of each layer, in place of `recomputation`; empty: none
  /// Of the micro-batches in flight one is not computed again: torchgpipe's last one.
  bool keeps_last = false;
  int in_flight = 1;  ///< micro-batches whose activations are held at once (pipelines)
  Zero zero = Zero::none;
  int zero_ways = 1;
  int expert_ways = 1;  ///< of zero_ways: devices that have different experts in layers of that kind
  /// mixed: modules compute with parameters of 2 B, as in Megatron-LM and with the MixedPrecisionPolicy of
  /// FSDP2, which casts its fp32 share when it gathers; false: autocast (pytorch), or a share of 2 B (ZeRO)
  bool half_parameters = false;
  bool host_optimizer = false;  ///< master weights and the optimizer's state lie in host memory
  bool fp32_gradients = false;  ///< mixed: gradients are summed into arrays of 4 B
  /// Activations are swapped to host memory until the backward pass (swapped_working_set).
  bool swap = false;
  /// Workspace of the kernel library. Without a value lbann has none, and pytorch and tensorflow have that of
  /// step_memory.hpp.
  std::optional<Bytes> workspace;
};

// LBANN's rule for the memory of activations, and what is swapped to the host (lbann_memory.cpp).

/// Layers whose outputs are kept as checkpoints (gradient checkpointing): the last layer of each recomputed
/// segment. The end of the network is not a checkpoint.
std::vector<std::size_t> checkpoints(const Model& model);

/// How each layer is computed again; empty: none is.
std::vector<RecomputedLayer> recomputed_layers(const Model& model, const MemoryOptions& options);

/// Elements of one sample that a micro-batch keeps between its forward and its backward pass: those of
/// kept_activations, with recomputation without the segment that is computed again.
double held_activations(const Model& model, const MemoryOptions& options);

/// Elements of one sample that the forward pass keeps for the backward pass. Reshapes share the memory of
/// their input; with activations in place, element-wise layers and additions do too. With recomputation these
/// are the checkpoints, and the largest segment between two of them.
double kept_activations(const Model& model, const MemoryOptions& options);

/// Elements of one sample's error signals: those of every output and of the input, or the most that are live
/// at once.
double kept_error_signals(const Model& model, const MemoryOptions& options);

/// Elements of one sample's error signals that are live during the backward pass of each layer, if each
/// signal is freed after its last use.
std::vector<double> live_error_signals(const Model& model, const MemoryOptions& options);

/// Elements of one sample of the network's input.
double input_elements(const Model& model);

/// For each layer, the layer whose memory holds its output; -1 for the network's input.
std::vector<int> memory_owners(const Model& model, const MemoryOptions& options);

/// Elements of one sample that a device holds, if activations are swapped to host memory until the backward
/// pass.
struct WorkingSet {
  double activations = 0;
  double error_signals = 0;

  double total() const { return activations + error_signals; }
};

/// The largest working set during a step. In the forward pass an output stays until its last reader has run.
/// In the backward pass it is copied back while the layer before its first reader runs (in backward order),
/// and stays until its last reader has run. Convolutions, dense layers and norms read their inputs; ReLU and
/// similar layers read their outputs; max pools and recurrent layers read both. Error signals are those that
/// are live then, or all, as the options say. The network's input is not swapped and not included (see
/// Memory::input).
///
/// Source: M. Rhu, N. Gimelshein, J. Clemons, A. Zulfiqar, S. W. Keckler, "vDNN: virtualized deep neural
/// networks for scalable, memory-efficient neural network design", MICRO 2016, section III (vDNN_all).
WorkingSet swapped_working_set(const Model& model, const MemoryOptions& options);

/// Elements of one sample that are copied to the host during the forward pass of each layer: its inputs and
/// its internal state. An input is copied with its first reader and after its last change (activations in
/// place may overwrite it). During the backward pass of the layer as many elements are copied back. Values
/// that no backward pass reads are not copied.
std::vector<double> copied_elements(const Model& model, const MemoryOptions& options);

}  // namespace stepcast
