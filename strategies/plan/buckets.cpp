#include "strategies/plan/buckets.hpp"

#include <algorithm>
#include <cctype>

#include "core/expects.hpp"
#include "core/fields.hpp"
#include "strategies/arithmetic/model_updates.hpp"

namespace stepcast {
namespace {

std::int64_t total(const LayerGradients& arrays) {
  std::int64_t sum = 0;
  for (const std::int64_t array : arrays) sum += array;
  return sum;
}

double gradient_bytes(std::int64_t elements, Bytes element) {
  return element.value * elements;
}

/// Adds one bucket for each array. The first of them includes the layer's compute.
void add_single_arrays(std::vector<Bucket>& buckets, LayerRange layers, const LayerGradients& arrays,
                       std::int64_t begin, Bytes element) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    buckets.push_back({i == 0 ? layers : LayerRange{layers.first, layers.first},
                       {begin, begin + arrays[i]},
                       {gradient_bytes(arrays[i], element)}});
    begin += arrays[i];
  }
}

}  // namespace

std::vector<LayerGradients> gradient_arrays(const Model& model) {
  std::vector<LayerGradients> gradients;
  for (const Layer& layer : model.layers) {
    gradients.emplace_back();
    for (const ParameterTensor& tensor : layer.parameters) {
      if (tensor.trainable) gradients.back().push_back(tensor.elements());
    }
  }
  return gradients;
}

Form<BucketSize> bucket_size() {
  const Form<Bytes> form = bytes(1);
  const auto read = [](const YamlValue& value) -> BucketSize {
    const std::string& text = value.node().text;
    if (text == "tensor") return kEachArray;
    if (text == "model") return kWholeModel;
    if (!text.empty() && std::isalpha(static_cast<unsigned char>(text[0])))
      value.expected("a size such as \"4 MiB\", tensor or model");
    return {.least = value.bytes(1)};
  };
  return {Allowed({KeyType::bytes, KeyType::name}, {1}, {"tensor", "model"}), read,
          [text = form.default_text](const BucketSize& size) { return text(size.least); }};
}

std::vector<Bucket> gradient_buckets(const std::vector<LayerGradients>& layers, Bytes element,
                                     const BucketSize& size, std::optional<Bytes> first) {
  using Holds = BucketSize::Holds;
  std::int64_t begin = 0;  // first element of the open bucket
  for (const LayerGradients& arrays : layers) begin += total(arrays);
  std::vector<Bucket> buckets;
  int last = layers.size();
  std::int64_t end = begin;
  for (int layer = last - 1; layer >= 0; --layer) {
    const LayerGradients& arrays = layers[layer];
    begin -= total(arrays);
    const double held = gradient_bytes(end - begin, element);
    const bool by_first = first && buckets.empty();
    const double least = by_first ? first->value : size.least.value;
    const bool full =
        size.holds == Holds::array || ((by_first || size.holds == Holds::bytes) && held >= least);
    if (held == 0 || !full) continue;
    if (size.holds == Holds::array) {
      add_single_arrays(buckets, {layer, last}, arrays, begin, element);
    } else {
      buckets.push_back({{layer, last}, {begin, end}, {held}});
    }
    last = layer;
    end = begin;
  }
  if (last > 0 || end > 0) buckets.push_back({{0, last}, {0, end}, {gradient_bytes(end, element)}});
  return buckets;
}

MicroBatch place_of_micro_batch(int micro_batch, int micro_batches) {
  expects(0 <= micro_batch && micro_batch < micro_batches, "a micro-batch of the step");
  if (micro_batch == 0) return MicroBatch::first;
  return micro_batch + 1 == micro_batches ? MicroBatch::last : MicroBatch::middle;
}

LocalWork sum_micro_batch(const Bucket& bucket, MicroBatch place, Seconds array) {
  const double arrays_moved = place == MicroBatch::first ? 2 : 3;
  return {"sum of micro-batches", arrays_moved * array, [elements = bucket.elements, place](Arrays& arrays) {
            if (elements.size() == 0) return;
            const std::span<float> sum = arrays.of(Array::update, elements);
            const std::span<float> gradient = arrays.of(Array::gradients, elements);
            if (place == MicroBatch::first) {
              std::ranges::copy(gradient, sum.begin());
            } else if (place == MicroBatch::middle) {
              accumulate(gradient, sum);
            } else {
              accumulate(sum, gradient);
            }
          }};
}

}  // namespace stepcast
