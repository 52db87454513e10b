#include "strategies/mesh/offload.hpp"

#include <algorithm>

#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast {

void wait_for_copies(const Model& part, const std::vector<Bytes>& kept, BytesPerSecond link,
                     Workload& workload) {
  const auto lengthen = [&](std::vector<LayerSeconds>& segments) {
    for (const LayerBlock& block : part.blocks) {
      const auto first = static_cast<std::size_t>(kSegmentsPerLayer) * static_cast<std::size_t>(block.first);
      const auto last = static_cast<std::size_t>(kSegmentsPerLayer) * static_cast<std::size_t>(block.last);
      double forward = 0, backward = 0;
      for (std::size_t i = first; i < last; ++i) {
        forward += segments[i].forward;
        backward += segments[i].backward;
      }
      const double copy = (kept[static_cast<std::size_t>(block.last - 1)] / link).value;
      segments[last - kSegmentsPerLayer].forward += std::max(0.0, copy - forward);
      segments[last - kSegmentsPerLayer + 1].backward += std::max(0.0, copy - backward);
    }
  };
  lengthen(workload.median);
  for (auto& sample : workload.samples) lengthen(sample);
}

}  // namespace stepcast
