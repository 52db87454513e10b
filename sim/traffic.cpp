#include "sim/traffic.hpp"

#include <algorithm>

#include "strategies/collectives/phases.hpp"

namespace stepcast {
namespace {

std::shared_ptr<const Schedule> shared(Schedule schedule) {
  return std::make_shared<const Schedule>(std::move(schedule));
}

std::shared_ptr<const Schedule> copied(std::vector<Edge> edges, int ranks) {
  return shared({ranks, 1, {one_round(std::move(edges), 1, Arrival::replace)}});
}

}  // namespace

std::shared_ptr<const Schedule> replicated(const std::shared_ptr<const Schedule>& schedule, int groups) {
  if (groups == 1) return schedule;
  const int ranks = schedule->ranks;
  Schedule all = side_by_side(*schedule, groups, [ranks](Edge& edge, int group) {
    edge.source += group * ranks;
    edge.target += group * ranks;
  });
  all.ranks *= groups;
  return shared(std::move(all));
}

std::shared_ptr<const Schedule> load_schedule(int workers) {
  std::vector<Edge> edges;
  for (int worker = 0; worker < workers; ++worker) edges.push_back({workers, worker, 0, 1, 0, 0});
  return copied(std::move(edges), workers + 1);
}

std::shared_ptr<const Schedule> channel_schedule(int sources, int targets) {
  std::vector<Edge> edges;
  for (int i = 0; i < std::max(sources, targets); ++i)
    edges.push_back({std::min(i, sources - 1), sources + std::min(i, targets - 1), 0, 1, 0, 0});
  return copied(std::move(edges), sources + targets);
}

std::vector<bool> folded_ranks(const Plan& plan) {
  std::vector<bool> folded(plan.endpoints.size(), false);
  for (const Role& role : plan.roles) {
    if (role.members == 1) continue;
    std::fill_n(folded.begin() + role.first_rank, role.members, true);
  }
  return folded;
}

}  // namespace stepcast
