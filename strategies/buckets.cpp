#include "strategies/buckets.hpp"

namespace stepcast {
namespace {

/// One bucket an array: the layer's compute comes with the first of them.
void add_single_arrays(std::vector<Bucket>& buckets, LayerRange layers, const LayerGradients& arrays) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    buckets.push_back({i == 0 ? layers : LayerRange{layers.first, layers.first}, arrays[i]});
  }
}

}  // namespace

std::vector<Bucket> gradient_buckets(const std::vector<LayerGradients>& layers, Bytes size) {
  std::vector<Bucket> buckets;
  int last = static_cast<int>(layers.size());
  Bytes held;
  for (int layer = last - 1; layer >= 0; --layer) {
    const LayerGradients& arrays = layers[static_cast<std::size_t>(layer)];
    for (const Bytes& array : arrays) held += array;
    if (held.value == 0 || held < size) continue;
    if (size.value == 0) {
      add_single_arrays(buckets, {layer, last}, arrays);
    } else {
      buckets.push_back({{layer, last}, held});
    }
    last = layer;
    held = {};
  }
  if (last > 0 || held.value > 0) buckets.push_back({{0, last}, held});
  return buckets;
}

}  // namespace stepcast
