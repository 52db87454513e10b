#pragma once

#include <cstddef>
#include <vector>

#include "models/cost/memory_options.hpp"
#include "models/network/model.hpp"

namespace stepcast {

// LBANN's rule for the memory of activations, and what is swapped to the host.

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
