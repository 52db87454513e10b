#pragma once

#include "strategies/compression.hpp"

namespace stepcast {

/// Columns of what travels compressed: gradient_bytes that a worker sends, quantize_seconds, restore_seconds.
Figures compression_figures(Bytes sent, CompressionSeconds seconds);

/// The same of gradients that all workers sum, bucket by bucket, once a step.
Figures compression_figures(const GradientCompression& compression, const std::vector<Bucket>& buckets,
                            int workers);

}  // namespace stepcast
