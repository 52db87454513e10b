#include "strategies/collectives/algorithms.hpp"

#include <map>

namespace stepcast {

Schedule side_by_side(const Schedule& one, int copies, const std::function<void(Edge&, int copy)>& place) {
  std::map<const std::vector<Edge>*, std::shared_ptr<const std::vector<Edge>>>
      placed;  // shared edges stay shared
  Schedule all = one;
  for (Phase& phase : all.phases) {
    auto& edges = placed[phase.edges.get()];
    if (!edges) {
      std::vector<Edge> list;
      list.reserve(phase.edges->size() * static_cast<std::size_t>(copies));
      for (int copy = 0; copy < copies; ++copy) {
        for (Edge edge : *phase.edges) {
          place(edge, copy);
          list.push_back(edge);
        }
      }
      edges = share(std::move(list));
    }
    phase.edges = edges;
  }
  return all;
}

}  // namespace stepcast
