#include "strategies/collectives/schedule.hpp"

namespace stepcast {
namespace {

Schedule network_schedule(NetworkPart part, int nodes) {
  const Group group{nodes, 1};
  switch (part) {
    case NetworkPart::ring:
      return ring_all_reduce(group);
    case NetworkPart::halving_doubling:
      return halving_doubling_all_reduce(group);
    case NetworkPart::binomial_tree:
      return binomial_all_reduce(group);
  }
  return {};
}

void append(Schedule& to, const Schedule& more) {
  to.phases.insert(to.phases.end(), more.phases.begin(), more.phases.end());
}

/// The schedule with every part divided into `factor` parts.
Schedule refined(Schedule schedule, int factor) {
  schedule.parts *= factor;
  for (Phase& phase : schedule.phases) {
    phase.unit *= factor;
    std::vector<Edge> edges = *phase.edges;
    for (Edge& edge : edges) edge.base *= factor;
    phase.edges = share(std::move(edges));
  }
  return schedule;
}

/// `local` in every node at the same time, with the local ranks moved on by `root`.
Schedule in_every_node(const Schedule& local, int nodes, int per_node, int root) {
  return side_by_side(local, nodes, [=](Edge& edge, int node) {
    edge.source = node * per_node + (edge.source + root) % per_node;
    edge.target = node * per_node + (edge.target + root) % per_node;
  });
}

/// `network` among local ranks `root` + c of all nodes on region c, for `shares` local ranks.
Schedule by_local_rank(const Schedule& network, int shares, int per_node, int root) {
  return side_by_side(network, shares, [&](Edge& edge, int local) {
    edge.source = edge.source * per_node + root + local;
    edge.target = edge.target * per_node + root + local;
    edge.base += local * network.parts;
  });
}

}  // namespace

Schedule hierarchical_all_reduce(const Group& group, LocalPart local, NetworkPart network) {
  check_group(group);
  const int per_node = std::min(group.ranks_per_node, group.ranks);
  if (group.ranks % per_node != 0)
    throw std::invalid_argument("hierarchical all-reduce: nodes need equal numbers of ranks");
  const int nodes = group.ranks / per_node;
  const bool leader = local != LocalPart::reduce_scatter, flat = local == LocalPart::flat;
  const int shares = leader ? 1 : per_node, root = flat ? group.root % per_node : 0;
  const Schedule between = network_schedule(network, nodes);
  const Group node{per_node, per_node};
  const Schedule down = flat ? flat_reduce(node) : leader ? binomial_reduce(node) : ring_reduce_scatter(node);
  const Schedule up = flat ? flat_broadcast(node) : leader ? binomial_broadcast(node) : ring_all_gather(node);

  // After the ring's reduce-scatter rank r owns chunk r + 1; shifting the chunks by one makes rank r own
  // chunk r.
  const auto align = [&](Schedule schedule) {
    if (!leader) {
      for (Phase& phase : schedule.phases) phase.offset -= 1;
    }
    return in_every_node(refined(std::move(schedule), between.parts), nodes, per_node, root);
  };
  Schedule schedule{group.ranks, shares * between.parts, {}};
  append(schedule, align(down));
  append(schedule, by_local_rank(between, shares, per_node, root));
  append(schedule, align(up));
  return schedule;
}

}  // namespace stepcast
