#pragma once

#include <vector>

#include "models/model.hpp"
#include "strategies/arrays.hpp"
#include "strategies/workload.hpp"

namespace stepcast {

/// Elements of the gradient arrays of one layer; empty for layers without parameters.
using LayerGradients = std::vector<std::int64_t>;

/// Of every layer of a model, trainable arrays only.
std::vector<LayerGradients> gradient_arrays(const Model& model);

/// Cuts the layers, last first, into buckets: a bucket closes at the first layer with which it holds at least
/// `size`. `size` 0 gives every gradient array a bucket of its own. The buckets together cover every layer
/// once.
/// @param element  bytes of one element on the wire
std::vector<Bucket> gradient_buckets(const std::vector<LayerGradients>& layers, Bytes element, Bytes size);

/// A bucket's gradients go to the sum of those of earlier micro-batches, which goes back with the last.
void accumulate_micro_batch(Arrays& arrays, const Bucket& bucket, bool last);

}  // namespace stepcast
