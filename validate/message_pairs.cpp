#include "validate/message_pairs.hpp"

#include <set>

namespace stepcast {

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
