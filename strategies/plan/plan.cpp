#include "strategies/plan/plan.hpp"

#include <algorithm>
#include <set>

#include "core/yaml.hpp"

namespace stepcast {

std::string to_string(const IneffectiveKey& one) {
  return one.key + ": has no effect " + one.why;
}

void note_idle(const YamlMap& map, const std::vector<std::string>& keys, const std::string& why,
               IdleKeys& idle) {
  for (const std::string& key : keys) {
    const auto value = map.maybe(key);
    const auto known = [&](const IneffectiveKey& one) { return value->path() == one.key; };
    if (value && std::ranges::none_of(idle, known)) idle.push_back({value->path(), why});
  }
}

CollectiveId add(Plan& plan, Collective collective) {
  plan.collectives.push_back(std::move(collective));
  return CollectiveId(plan.collectives.size() - 1);
}

CommunicatorId add(Plan& plan, Communicator communicator) {
  plan.communicators.push_back(std::move(communicator));
  return CommunicatorId(plan.communicators.size() - 1);
}

const Communicator& communicator_of(const Plan& plan, const Collective& collective) {
  return plan.communicators.at(collective.communicator.index());
}

const std::vector<std::string>& collective_kind_names() {
  static const std::vector<std::string> names{"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                              "reduce",     "all_to_all",     "exchange"};
  return names;
}

RoleId role_of(const Plan& plan, RankId rank) {
  for (std::size_t role = 0; role < plan.roles.size(); ++role) {
    const int member = plan.roles[role].member(rank);
    if (member >= 0 && member < plan.roles[role].members) return RoleId(role);
  }
  return {};
}

int training_ranks(const Plan& plan) {
  int ranks = 0;
  for (const Role& role : plan.roles) ranks += role.training ? role.members : 0;
  return ranks;
}

std::vector<std::pair<RankId, RankId>> message_pairs(const Plan& plan) {
  std::set<std::pair<RankId, RankId>> pairs;
  const auto add = [&](const Role& from, const Role& to) {
    for (int member = 0; member < from.members; ++member) {
      const int other = to.members == 1 ? 0 : member;
      if (other < to.members) pairs.emplace(from.rank(member), to.rank(other));
    }
  };
  for (const auto& [from, to] : plan.channels) add(plan.roles.at(from.index()), plan.roles.at(to.index()));
  for (const Role& from : plan.roles) {
    for (const Role& to : plan.roles) {
      if (plan.asynchronous && plan.channels.empty() && from.training != to.training) add(from, to);
    }
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace stepcast
