#include "strategies/collectives/schedule.hpp"

namespace stepcast {
namespace {

/// Rank at `position` of a ring that visits every node's ranks from local rank `first` on.
int ring_rank(const Group& group, int position, int first) {
  const int per_node = std::min(group.ranks_per_node, group.ranks);
  const int node = position / per_node;
  const int here = std::min(per_node, group.ranks - node * per_node);
  return node * per_node + (position % per_node + first) % here;
}

std::vector<Edge> ring_edges(const Group& group, int channels, int per_channel_parts) {
  std::vector<Edge> edges;
  const int per_node = std::min(group.ranks_per_node, group.ranks);
  for (int channel = 0; channel < channels; ++channel) {
    const int first = channel * per_node / channels;
    for (int position = 0; position < group.ranks; ++position) {
      Edge edge;
      edge.source = ring_rank(group, position, first);
      edge.target = ring_rank(group, (position + 1) % group.ranks, first);
      edge.chunk = position;
      edge.base = channel * per_channel_parts;
      edges.push_back(edge);
    }
  }
  return edges;
}

Schedule ring(const Group& group, int channels) {
  check_group(group);
  if (channels < 1) throw std::invalid_argument("a ring needs channels >= 1");
  Schedule schedule{group.ranks, group.ranks * channels, {}};
  if (group.ranks == 1) return schedule;
  Phase scatter;
  scatter.edges = share(ring_edges(group, channels, group.ranks));
  scatter.rounds = scatter.active = group.ranks - 1;
  scatter.modulus = group.ranks;
  scatter.step = -1;  // each rank forwards the chunk that its left neighbour delivered in the round before
  Phase gather = scatter;
  gather.offset = 1;
  gather.on_receive = OnReceive::copy;
  schedule.phases = {scatter, gather};
  return schedule;
}

}  // namespace

Schedule ring_all_reduce(const Group& group, int channels) {
  return ring(group, channels);
}

Schedule ring_reduce_scatter(const Group& group, int channels) {
  Schedule schedule = ring(group, channels);
  if (!schedule.phases.empty()) schedule.phases.pop_back();
  return schedule;
}

Schedule ring_all_gather(const Group& group, int channels) {
  Schedule schedule = ring(group, channels);
  if (!schedule.phases.empty()) schedule.phases.erase(schedule.phases.begin());
  return schedule;
}

}  // namespace stepcast
