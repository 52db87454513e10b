#include "strategies/plan/buckets.hpp"

#include <algorithm>

#include "strategies/arithmetic/center_updates.hpp"

namespace stepcast {
namespace {

std::int64_t total(const LayerGradients& arrays) {
  std::int64_t sum = 0;
  for (const std::int64_t array : arrays) sum += array;
  return sum;
}

double bytes(std::int64_t elements, Bytes element) {
  return element.value * static_cast<double>(elements);
}

/// Adds one bucket for each array. The first of them includes the layer's compute.
void add_single_arrays(std::vector<Bucket>& buckets, LayerRange layers, const LayerGradients& arrays,
                       std::int64_t begin, Bytes element) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    buckets.push_back({i == 0 ? layers : LayerRange{layers.first, layers.first},
                       {begin, begin + arrays[i]},
                       {bytes(arrays[i], element)}});
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

std::vector<Bucket> gradient_buckets(const std::vector<LayerGradients>& layers, Bytes element, Bytes size,
                                     std::optional<Bytes> first) {
  std::int64_t begin = 0;  // first element of the open bucket
  for (const LayerGradients& arrays : layers) begin += total(arrays);
  std::vector<Bucket> buckets;
  int last = static_cast<int>(layers.size());
  std::int64_t end = begin;
  for (int layer = last - 1; layer >= 0; --layer) {
    const LayerGradients& arrays = layers[static_cast<std::size_t>(layer)];
    begin -= total(arrays);
    const double held = bytes(end - begin, element);
    if (held == 0 || held < (buckets.empty() && size.value > 0 ? first.value_or(size) : size).value) continue;
    if (size.value == 0) {
      add_single_arrays(buckets, {layer, last}, arrays, begin, element);
    } else {
      buckets.push_back({{layer, last}, {begin, end}, {held}});
    }
    last = layer;
    end = begin;
  }
  if (last > 0 || end > 0) buckets.push_back({{0, last}, {0, end}, {bytes(end, element)}});
  return buckets;
}

void accumulate_micro_batch(Arrays& arrays, const Bucket& bucket, bool last) {
  if (bucket.elements.size() == 0) return;
  const std::span<float> sum = arrays.of(Array::update, bucket.elements);
  const std::span<float> gradient = arrays.of(Array::gradients, bucket.elements);
  accumulate(gradient, sum);
  if (!last) return;
  std::ranges::copy(sum, gradient.begin());
  std::ranges::fill(sum, 0.0F);
}

}  // namespace stepcast
