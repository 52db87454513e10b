#pragma once

#include <vector>

#include "models/cost/cost.hpp"
#include "models/cost/device.hpp"
#include "models/layer_times/trace.hpp"

namespace stepcast {

/// Share of the multiprocessors of a device that a forward or backward-data product keeps busy. Each
/// multiprocessor computes output tiles of 64 x 64 (positions of all samples x channels); with fewer tiles
/// than multiprocessors, some are idle. 1 if the number of multiprocessors is unknown, and for layers without
/// such a product.
double filled_share(const Shape& product, std::int64_t batch, const Device& device);

/// The part of a network that one device computes: the same layers in smaller shapes (`largest_spatial_part`,
/// `shard_filters` ...), and the number of samples of each layer.
struct PartModel {
  const Model* model = nullptr;
  std::vector<std::int64_t> batch;  ///< samples of each layer
};

/// The part with a shared vocabulary that is padded to a multiple of 128 words a device, with which products
/// are fast. Source: Megatron-LM, arguments: --make-vocab-size-divisible-by (128), times the tensor-parallel
/// size.
Model with_padded_vocabulary(const Model& whole, Model part);

/// Layer times of a part of a network from a trace of the whole, by the rule of
/// docs/explanation/partition-times.md. For each layer and pass:
///
///   time(part) = launch + (time(whole) - launch) x work(part) / work(whole)
///   work = max(computing / filled_share, streaming)
///
/// launch = kernels x launch overhead, but at most the whole time. computing and streaming are the parts of
/// Roofline (models/cost/roofline.hpp). Samples keep their ratio to the median.
/// @throws InputError if the trace does not belong to `whole`
Trace part_trace(const Model& whole, const Trace& trace, const PartModel& part, const Device& device);

/// Layer times of a part from traces of several batches. The batch of the part is the largest batch of its
/// layers. The rule is applied to the trace of that batch; between two captured batches to their interpolated
/// trace, and outside the captured ones to the nearest trace.
Trace part_trace(const Model& whole, const std::vector<const Trace*>& traces, const PartModel& part,
                 const Device& device);

}  // namespace stepcast
