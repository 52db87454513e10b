#pragma once

#include <string>
#include <vector>

#include "models/layer.hpp"

namespace stepcast {

std::int64_t elements(const Shape& shape);

/// "64 x 112 x 112".
std::string to_string(const Shape& shape);

/// All words of the YAML key `kind`, in the order of LayerKind.
std::vector<std::string> layer_kind_words();

/// Losses end a network: nothing reads their output, a single number.
bool is_loss(LayerKind kind);

// Each function below completes a layer whose `kind` and `input` are set: its output shape and parameters.

/// input {..., features} -> {..., units}; weight {units, features}, bias {units}.
void complete_dense(std::int64_t units, bool bias, Layer& layer);

/// Filters {filters, channels, kernel...} shared by all positions; needs `window`.
void complete_convolution(std::int64_t filters, bool bias, Layer& layer);

/// The same with filters of its own at every position: {positions..., filters, channels, kernel...}.
void complete_locally_connected(std::int64_t filters, bool bias, Layer& layer);

/// Scale and shift a channel (trainable), running mean and variance (not trainable).
void complete_batch_norm(Layer& layer);

/// Scale and shift over the last dimension.
void complete_layer_norm(Layer& layer);

/// lstm (4 gates) and gru (3 gates); needs `hidden`, `bidirectional`. A direction has weights
/// {gates, hidden, features} and {gates, hidden, hidden} and one bias {gates, hidden}.
/// @param whole_sequence  output {time, directions x hidden}, else that of the last time step alone
void complete_recurrent(bool whole_sequence, Layer& layer);

/// {time, 3 x width} -> {time, width}.
void complete_attention(Layer& layer);

/// Output shape of a window over `input` {channels, sizes...}: {channels, (size + pads - kernel) / stride + 1
/// ...}.
Shape window_output(std::int64_t channels, const Shape& input, const Window& window);

}  // namespace stepcast
