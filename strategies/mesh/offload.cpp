#include "strategies/mesh/offload.hpp"

#include <algorithm>

#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast {

void wait_for_copies(const Model& part, const std::vector<Bytes>& kept, BytesPerSecond link,
                     Workload& workload) {
  const auto lengthen = [&](std::vector<LayerSeconds>& segments) {
    for (const LayerBlock& block : part.blocks) {
      const int first = kSegmentsPerLayer * block.first, last = kSegmentsPerLayer * block.last;
      double forward = 0, backward = 0;
      for (int i = first; i < last; ++i) {
        forward += segments[i].forward;
        backward += segments[i].backward;
      }
      const double copy = (kept[block.last - 1] / link).value;
      segments[last - kSegmentsPerLayer].forward += std::max(0.0, copy - forward);
      segments[last - kSegmentsPerLayer + 1].backward += std::max(0.0, copy - backward);
    }
  };
  lengthen(workload.median);
  for (auto& sample : workload.samples) lengthen(sample);
}

}  // namespace stepcast
