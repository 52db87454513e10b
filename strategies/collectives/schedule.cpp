#include "strategies/collectives/schedule.hpp"

#include <map>

namespace stepcast {

Slice slice_of(const Schedule& schedule, const Phase& phase, const Edge& edge, int k, std::int64_t elements) {
  const int turn = (edge.chunk + phase.offset + k * phase.step) % phase.modulus;
  const int chunk = turn < 0 ? turn + phase.modulus : turn;
  const int first = edge.base + phase.unit * chunk;
  return {part_begin(elements, schedule.parts, first),
          part_begin(elements, schedule.parts, first + phase.unit * edge.chunks)};
}

double message_count(const Schedule& schedule) {
  double count = 0;
  for (const Phase& phase : schedule.phases) count += 1.0 * phase.edges->size() * phase.active;
  return count;
}

Schedule side_by_side(const Schedule& one, int copies, const std::function<void(Edge&, int copy)>& place) {
  std::map<const std::vector<Edge>*, std::shared_ptr<const std::vector<Edge>>>
      placed;  // shared edges stay shared
  Schedule all = one;
  for (Phase& phase : all.phases) {
    auto& edges = placed[phase.edges.get()];
    if (!edges) {
      std::vector<Edge> list;
      list.reserve(phase.edges->size() * copies);
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
