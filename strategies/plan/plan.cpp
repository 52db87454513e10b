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

int role_of(const Plan& plan, int rank) {
  for (std::size_t role = 0; role < plan.roles.size(); ++role) {
    const int place = rank - plan.roles[role].first_rank;
    if (place >= 0 && place < plan.roles[role].members) return static_cast<int>(role);
  }
  return -1;
}

int training_ranks(const Plan& plan) {
  int ranks = 0;
  for (const Role& role : plan.roles) ranks += role.training ? role.members : 0;
  return ranks;
}

std::vector<std::pair<int, int>> message_pairs(const Plan& plan) {
  std::set<std::pair<int, int>> pairs;
  const auto add = [&](const Role& from, const Role& to) {
    for (int member = 0; member < from.members; ++member) {
      const int other = to.members == 1 ? 0 : member;
      if (other < to.members) pairs.emplace(from.first_rank + member, to.first_rank + other);
    }
  };
  for (const auto& [from, to] : plan.channels)
    add(plan.roles.at(static_cast<std::size_t>(from)), plan.roles.at(static_cast<std::size_t>(to)));
  for (const Role& from : plan.roles) {
    for (const Role& to : plan.roles) {
      if (plan.asynchronous && plan.channels.empty() && from.training != to.training) add(from, to);
    }
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace stepcast
