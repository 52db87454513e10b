#include "sim/single_messages.hpp"

#include "sim/traffic.hpp"

namespace stepcast {

Placement placement_of(const Placement& all, const std::vector<int>& ranks) {
  Placement placement{all.platform, all.topology, {}, all.latency_factor};
  for (const int rank : ranks) {
    placement.endpoints.push_back(rank < 0 ? all.platform->storage_endpoint()
                                           : all.endpoints[static_cast<std::size_t>(rank)]);
  }
  return placement;
}

SingleMessages channel_messages(const Plan& plan, const Placement& all, const std::pair<int, int>& channel) {
  const Role& source = plan.roles[static_cast<std::size_t>(channel.first)];
  const Role& target = plan.roles[static_cast<std::size_t>(channel.second)];
  SingleMessages messages{channel_schedule(source.members, target.members), {}, {}};
  for (const Role* role : {&source, &target}) {
    for (int i = 0; i < role->members; ++i) messages.ranks.push_back(role->first_rank + i);
  }
  messages.placement = placement_of(all, messages.ranks);
  return messages;
}

SingleMessages loads_of(const Role& role, int first, int count, const Placement& all) {
  SingleMessages loads{load_schedule(count), {}, {}};
  for (int i = 0; i < count; ++i) loads.ranks.push_back(role.first_rank + first + i);
  loads.ranks.push_back(-1);
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
