#include "strategies/options/activation_offload.hpp"

#include <algorithm>

#include "models/cost/activation_memory.hpp"

namespace stepcast {

void swap_to_host(const Model& model, const ActivationOffload& swap, Workload& workload) {
  std::vector<double> copy;  // seconds
  for (const double elements : copied_elements(model, swap.memory)) {
    const Bytes size = static_cast<double>(swap.memory.batch) * elements * swap.element;
    copy.push_back((size / swap.bandwidth).value);
  }
  const auto lengthen = [&](std::vector<LayerSeconds>& layers) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      layers[i].forward = std::max(layers[i].forward, copy[i]);
      layers[i].backward = std::max(layers[i].backward, copy[i]);
    }
  };
  lengthen(workload.median);
  for (auto& sample : workload.samples) lengthen(sample);
}

}  // namespace stepcast
