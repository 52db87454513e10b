#include "sim/patterns/point_to_point_schedules.hpp"

#include <algorithm>

#include "strategies/collectives/schedule.hpp"

namespace stepcast {
namespace {

std::shared_ptr<const Schedule> shared(Schedule schedule) {
  return std::make_shared<const Schedule>(std::move(schedule));
}

std::shared_ptr<const Schedule> copied(std::vector<Edge> edges, int ranks) {
  return shared({ranks, 1, {one_round(std::move(edges), 1, OnReceive::copy)}});
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

namespace {

/// A schedule in which each of `workers` ranks reads the buffer from the rank that follows the last of them.
std::shared_ptr<const Schedule> load_schedule(int workers) {
  std::vector<Edge> edges;
  for (int worker = 0; worker < workers; ++worker) edges.push_back({workers, worker, 0, 1, 0, 0});
  return copied(std::move(edges), workers + 1);
}

/// A schedule in which source i sends the buffer to target i; a single source or target serves all. The ranks
/// of the targets follow those of the sources.
std::shared_ptr<const Schedule> channel_schedule(int sources, int targets) {
  std::vector<Edge> edges;
  for (int i = 0; i < std::max(sources, targets); ++i)
    edges.push_back({std::min(i, sources - 1), sources + std::min(i, targets - 1), 0, 1, 0, 0});
  return copied(std::move(edges), sources + targets);
}

}  // namespace

IdTable<RankId, bool> folded_ranks(const Plan& plan) {
  IdTable<RankId, bool> folded(plan.endpoints.size(), false);
  for (const Role& role : plan.roles) {
    if (role.members == 1) continue;
    std::fill_n(folded.begin() + role.first_rank.value, role.members, true);
  }
  return folded;
}

Placement placement_of(const Placement& all, const std::vector<RankId>& ranks) {
  Placement placement{all.platform, all.topology, {}, all.latency_factor};
  for (const RankId rank : ranks) {
    placement.endpoints.push_back(rank.exists() ? all.endpoints[rank.index()]
                                                : all.platform->storage_endpoint());
  }
  return placement;
}

SingleMessages channel_messages(const Plan& plan, const Placement& all,
                                const std::pair<RoleId, RoleId>& channel) {
  const Role& source = plan.roles[channel.first.index()];
  const Role& target = plan.roles[channel.second.index()];
  SingleMessages messages{channel_schedule(source.members, target.members), {}, {}};
  for (const Role* role : {&source, &target}) {
    for (int i = 0; i < role->members; ++i) messages.ranks.push_back(role->rank(i));
  }
  messages.placement = placement_of(all, messages.ranks);
  return messages;
}

SingleMessages loads_of(const Role& role, int first, int count, const Placement& all) {
  SingleMessages loads{load_schedule(count), {}, {}};
  for (int i = 0; i < count; ++i) loads.ranks.push_back(role.rank(first + i));
  loads.ranks.emplace_back();
  loads.placement = placement_of(all, loads.ranks);
  return loads;
}

std::vector<SingleMessages> single_messages(const Plan& plan, const Placement& all) {
  std::vector<SingleMessages> singles;
  for (const auto& channel : plan.channels) singles.push_back(channel_messages(plan, all, channel));
  for (const Role& role : plan.roles) {
    if (plan.load_data && role.training) singles.push_back(loads_of(role, 0, role.members, all));
  }
  return singles;
}

}  // namespace stepcast
