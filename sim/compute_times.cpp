#include "sim/compute_times.hpp"

namespace stepcast {
namespace {

std::vector<LayerSeconds> prefix_sums(const std::vector<LayerSeconds>& layers) {
  std::vector<LayerSeconds> sums{{}};
  for (const LayerSeconds& layer : layers) {
    const LayerSeconds& last = sums.back();
    sums.push_back(
        {last.forward + layer.forward, last.backward + layer.backward, last.update + layer.update});
  }
  return sums;
}

double of(const LayerSeconds& seconds, Work pass) {
  switch (pass) {
    case Work::forward:
      return seconds.forward;
    case Work::backward:
      return seconds.backward;
    case Work::update:
      return seconds.update;
  }
  return 0;
}

}  // namespace

ComputeTimes::ComputeTimes(const Workload& workload)
    : median_(workload.median), sample_ranks_(workload.sample_ranks) {
  prefixes_.push_back(prefix_sums(workload.median));
  for (const auto& sample : workload.samples) prefixes_.push_back(prefix_sums(sample));
}

double ComputeTimes::seconds(Work pass, LayerRange layers, const Draw& draw) const {
  if (draw.layer_sigma > 0) {
    double drawn = 0;
    for (int layer = layers.first; layer < layers.last; ++layer) {
      const double layer_seconds = of(median_[static_cast<std::size_t>(layer)], pass);
      if (layer_seconds > 0) drawn += draw.layer_factor(layer, pass) * layer_seconds;
    }
    return draw.factor * drawn;
  }
  const Prefix& prefix = prefixes_[static_cast<std::size_t>(draw.sample + 1)];
  const double sum = of(prefix[static_cast<std::size_t>(layers.last)], pass) -
                     of(prefix[static_cast<std::size_t>(layers.first)], pass);
  return draw.factor * sum;
}

}  // namespace stepcast
