#pragma once

#include <vector>

#include "models/memory.hpp"

namespace stepcast {

/// Last layers of the stretches that are computed again; the end of the network is no checkpoint.
std::vector<std::size_t> checkpoints(const Model& model, MemoryOptions::Recomputation how);

/// Elements of one sample that the forward pass leaves for the backward pass. Reshapes share their input's
/// memory; with activations in place so do element-wise layers and additions. With recomputation: the
/// checkpoints, and the largest stretch between two of them.
double kept_activations(const Model& model, const MemoryOptions& options);

/// Elements of one sample's error signals: of every output and the input, or the most that are alive at once.
double kept_error_signals(const Model& model, const MemoryOptions& options);

/// Of each layer, elements of one sample's error signals that are alive during its backward pass, where each
/// is freed as soon as it is used.
std::vector<double> alive_error_signals(const Model& model, const MemoryOptions& options);

double input_elements(const Model& model);

/// Per layer, the layer whose memory holds its output; -1 the network's input.
std::vector<int> memory_owners(const Model& model, const MemoryOptions& options);

}  // namespace stepcast
