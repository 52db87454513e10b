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

/// Place of a micro-batch among several of a step.
enum class MicroBatch { first, middle, last };
MicroBatch place_of_micro_batch(int micro_batch, int micro_batches);

/// Sums a bucket's gradients over the micro-batches of a step: the first copies them to `update`, those in
/// the middle add them to it, and the last adds that sum to `gradients`.
/// @param array  time to read or write these gradients once
LocalWork sum_micro_batch(const Bucket& bucket, MicroBatch place, Seconds array);

}  // namespace stepcast
