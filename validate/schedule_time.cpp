#include "validate/schedule_time.hpp"

#include <algorithm>
#include <map>

namespace stepcast {

Seconds schedule_time(const Schedule& schedule, const LinkTable& links, Bytes buffer) {
  double seconds = 0;
  for (const Phase& phase : schedule.phases) {
    std::map<int, int> sent;  // chunks that a rank sends in a round share its link
    for (const Edge& edge : *phase.edges) sent[edge.source] += edge.chunks;
    int most = 0, largest = 0;
    for (const auto& [rank, chunks] : sent) most = std::max(most, chunks);
    for (const Edge& edge : *phase.edges) largest = std::max(largest, edge.chunks);
    const double part = buffer.value * phase.unit / schedule.parts;
    const double one = message_time(links, {part * largest}).value;
    const MessageCost& cost = message_cost(links.costs, {part * largest});
    const double more = part * (most - largest) / (cost.bandwidth_factor * links.bandwidth.value);
    seconds += phase.rounds * (one + more);
  }
  return {seconds};
}

}  // namespace stepcast
