#pragma once

#include <optional>
#include <vector>

#include "models/network/model.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

template <class V>
struct Form;  // core/fields.hpp

/// Numbers of elements of the gradient arrays of one layer; empty for layers without parameters.
using LayerGradients = std::vector<std::int64_t>;

/// Gradient arrays of every layer of a model. Only trainable parameters have gradients.
std::vector<LayerGradients> gradient_arrays(const Model& model);

/// How many gradients one sum holds: those of at least so many bytes, one array, or all.
struct BucketSize {
  enum class Holds { bytes, array, model };

  Bytes least{26214400};  ///< where it holds bytes: 25 MiB if the scenario has no `bucket`
  Holds holds = Holds::bytes;
};
constexpr BucketSize kEachArray{.holds = BucketSize::Holds::array};
constexpr BucketSize kWholeModel{.holds = BucketSize::Holds::model};

/// `bucket`: a size such as "25 MiB", `tensor` (kEachArray) or `model` (kWholeModel).
Form<BucketSize> bucket_size();
constexpr auto kBucketMeaning = "size of the gradients that one all-reduce sums";

/// Divides the layers, last layer first, into buckets. A bucket closes with the layer that fills it. Every
/// layer is in one bucket.
/// @param element  size of one element in a message
/// @param first  size of the first bucket; none: `size`. Without effect where each array is a bucket
std::vector<Bucket> gradient_buckets(const std::vector<LayerGradients>& layers, Bytes element,
                                     const BucketSize& size, std::optional<Bytes> first = {});

/// Place of a micro-batch among several of a step.
enum class MicroBatch { first, middle, last };
MicroBatch place_of_micro_batch(int micro_batch, int micro_batches);

/// Sums a bucket's gradients over the micro-batches of a step: the first copies them to `update`, those in
/// the middle add them to it, and the last adds that sum to `gradients`.
/// @param array  time to read or write these gradients once
LocalWork sum_micro_batch(const Bucket& bucket, MicroBatch place, Seconds array);

}  // namespace stepcast
