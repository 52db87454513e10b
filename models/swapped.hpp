#pragma once

#include <vector>

#include "models/memory.hpp"

namespace stepcast {

/// Elements of one sample on a device whose activations wait in the host's memory for the backward pass.
struct WorkingSet {
  double activations = 0;
  double error_signals = 0;

  double total() const { return activations + error_signals; }
};

/// The worst moment of a step. Forward, an output stays until its last reader has run. On the way back it is
/// copied beside the layer before (in that order) the first that needs it, and stays until the last one that
/// does: convolutions, dense layers and norms read their inputs, ReLU and its like their outputs, max pools
/// and recurrent layers both. Error signals are those alive then, or all, as the options say. The network's
/// input is no part of it: it stays (Memory::input).
///
/// Source: M. Rhu, N. Gimelshein, J. Clemons, A. Zulfiqar, S. W. Keckler, "vDNN: virtualized deep neural
/// networks for scalable, memory-efficient neural network design", MICRO 2016, section III (vDNN_all).
WorkingSet swapped_working_set(const Model& model, const MemoryOptions& options);

/// Of each layer, elements of one sample that are copied to the host beside its forward pass: its inputs,
/// each with its first reader and once it is final (not while activations in place may overwrite it), and
/// what the layer keeps inside. Beside its backward pass as many come back. What no backward pass reads is
/// not copied.
std::vector<double> copied_elements(const Model& model, const MemoryOptions& options);

}  // namespace stepcast
