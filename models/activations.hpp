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

double input_elements(const Model& model);

/// The largest two consecutive outputs of one sample: what stays on the device while activations are swapped
/// to the host, the layer at work and the one on its way.
double largest_pair(const Model& model);

}  // namespace stepcast
