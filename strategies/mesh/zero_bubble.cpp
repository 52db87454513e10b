#include "strategies/mesh/zero_bubble.hpp"

#include <utility>

namespace stepcast {

void split_weights(const std::vector<LayerCalls>& calls, Workload& workload) {
  const auto split = [&](std::vector<LayerSeconds>& segments) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      // See layer_segments.cpp: where the gradients of weights stand.
      const std::size_t at = kSegmentsPerLayer * i + (calls[i].after_backward.empty() ? 2 : 0);
      segments.push_back({0, std::exchange(segments[at].backward, 0), 0});
    }
  };
  split(workload.median);
  if (!workload.host.empty()) split(workload.host);
  for (auto& sample : workload.samples) split(sample);
  for (std::size_t i = 0; i < calls.size(); ++i)
    workload.layer_names.push_back(workload.layer_names[kSegmentsPerLayer * i]);
  workload.statistics.resize(workload.median.size());
}

PassSegments weight_passes(LayerRange layers, int segments,
                           const std::vector<std::vector<CollectiveId>>& sums) {
  PassSegments made;
  int last = layers.last;  // of the layers that come next
  for (int layer = layers.last - 1; layer >= layers.first; --layer) {
    const std::vector<CollectiveId>& ready = sums[layer];
    if (ready.empty() && layer > layers.first) continue;
    made.backward.push_back({{}, {}, {segments + layer, segments + last}, ready});
    last = layer;
  }
  return made;
}

PassSegments whole_backward(const PassSegments& passes, int segments,
                            const std::vector<std::vector<CollectiveId>>& sums) {
  PassSegments made;
  const auto ended = [](LayerRange step) {  // layers whose lowest segment is in it
    return LayerRange{(step.first + kSegmentsPerLayer - 1) / kSegmentsPerLayer,
                      (step.last + kSegmentsPerLayer - 1) / kSegmentsPerLayer};
  };
  for (const OverlapSegment& step : passes.backward) {
    made.backward.push_back(step);
    for (const LayerRange part : {ended(step.overlapped), ended(step.after)}) {
      for (int layer = part.last - 1; layer >= part.first; --layer)
        made.backward.push_back({{}, {}, {segments + layer, segments + layer + 1}, sums[layer]});
    }
  }
  return made;
}

}  // namespace stepcast
