#pragma once

#include <vector>

#include "strategies/workload.hpp"

namespace stepcast {

/// Gradient arrays of one layer, in bytes; empty for layers without parameters.
using LayerGradients = std::vector<Bytes>;

/// Cuts the layers, last first, into buckets: a bucket closes at the first layer with which it holds at least
/// `size`. `size` 0 gives every gradient array a bucket of its own. The buckets together cover every layer
/// once.
std::vector<Bucket> gradient_buckets(const std::vector<LayerGradients>& layers, Bytes size);

}  // namespace stepcast
