#include "strategies/collectives/schedule.hpp"

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
  for (const Phase& phase : schedule.phases) count += static_cast<double>(phase.edges->size()) * phase.active;
  return count;
}

}  // namespace stepcast
