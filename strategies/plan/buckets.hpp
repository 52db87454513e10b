#pragma once

#include <optional>
#include <vector>

#include "models/network/model.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Numbers of elements of the gradient arrays of one layer; empty for layers without parameters.
using LayerGradients = std::vector<std::int64_t>;

/// Gradient arrays of every layer of a model. Only trainable parameters have gradients.
std::vector<LayerGradients> gradient_arrays(const Model& model);

/// Divides the layers, last layer first, into buckets. A bucket closes with the layer at which it holds at
/// least `size`; with `size` 0 every gradient array is a bucket. Every layer is in one bucket.
/// @param element  size of one element in a message
/// @param first  size of the first bucket; none: `size`. Without effect where `size` is 0
std::vector<Bucket> gradient_buckets(const std::vector<LayerGradients>& layers, Bytes element, Bytes size,
                                     std::optional<Bytes> first = {});

/// Adds a bucket's gradients of one micro-batch to the sum in `update`. With the last micro-batch, moves the
/// sum to `gradients`.
void accumulate_micro_batch(Arrays& arrays, const Bucket& bucket, bool last);

}  // namespace stepcast
