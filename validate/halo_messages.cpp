#include "validate/halo_messages.hpp"

#include <cstdlib>

#include "models/device_part.hpp"

namespace stepcast {
namespace {

/// Along which dimension two devices are neighbours: their numbers differ by the product of the later parts.
std::size_t dimension_between(const Parts& parts, int a, int b) {
  int stride = 1;
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i] > 1 && std::abs(a - b) == stride) return i;
    stride *= parts[i];
  }
  return 0;
}

}  // namespace

std::vector<std::vector<HaloBox>> halo_messages(const Model& model, const SampleCut& cut,
                                                const Collective& exchange, int place) {
  const auto elements = static_cast<std::int64_t>(exchange.buffer.size.value / sizeof(float));
  const bool errors = exchange.buffer.array == Array::errors;
  std::vector<std::vector<HaloBox>> phases;
  for (const Phase& phase : exchange.schedule->phases) {
    phases.emplace_back();
    for (const Edge& edge : *phase.edges) {
      if (edge.source != place && edge.target != place) continue;
      const std::size_t dimension = dimension_between(cut.parts, edge.source, edge.target);
      phases.back().push_back({edge.source == place,
                               halo_box(model, cut, static_cast<std::size_t>(exchange.layer), errors,
                                        edge.target, dimension, edge.source < edge.target),
                               slice_of(*exchange.schedule, phase, edge, 0, elements).begin});
    }
  }
  return phases;
}

}  // namespace stepcast
