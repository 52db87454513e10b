#include "strategies/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>

#include "core/expects.hpp"
#include "core/yaml.hpp"

namespace stepcast {

std::string to_string(const IneffectiveKey& one) {
  return one.key + ": has no effect " + one.why;
}

void note_ineffective(const YamlMap& map, const std::vector<std::string>& keys, const std::string& why,
                      IneffectiveKeys& found) {
  for (const std::string& key : keys) {
    const auto value = map.maybe(key);
    const auto known = [&](const IneffectiveKey& one) { return value->path() == one.key; };
    if (value && std::ranges::none_of(found, known)) found.push_back({value->path(), why});
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
  expects(collective.communicator.index() < plan.communicators.size(), "a communicator of the plan");
  return plan.communicators[collective.communicator.index()];
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

bool trains(const Plan& plan, RankId rank) {
  const RoleId role = role_of(plan, rank);
  return role.exists() && plan.roles[role.index()].training;
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

namespace {

std::shared_ptr<const Schedule> shared(Schedule schedule) {
  return std::make_shared<const Schedule>(std::move(schedule));
}

}  // namespace

std::shared_ptr<const Schedule> schedule_of(const Collective& collective, const AllReduceChoice& choice,
                                            const Group& group) {
  switch (collective.kind) {
    case Collective::Kind::all_reduce:
      return all_reduce_schedule(choice, {group.ranks, group.ranks_per_node, collective.root},
                                 collective.buffer.size);
    case Collective::Kind::reduce_scatter:
      return shared(ring_reduce_scatter(group, choice.channels));
    case Collective::Kind::all_gather:
      return shared(ring_all_gather(group, choice.channels));
    case Collective::Kind::broadcast:
      return shared(binomial_broadcast(group));
    case Collective::Kind::reduce:
      return shared(binomial_reduce(group));
    case Collective::Kind::all_to_all:
      return shared(all_to_all(group));
    case Collective::Kind::exchange:
      break;
  }
  if (collective.schedule == nullptr || collective.schedule->ranks != group.ranks)
    throw std::logic_error("an exchange needs a schedule of as many ranks as its group");
  return collective.schedule;
}

bool has_automatic_algorithm(const Plan& plan, const Collective& collective) {
  const Communicator& communicator = communicator_of(plan, collective);
  return collective.kind == Collective::Kind::all_reduce &&
         communicator.all_reduce.algorithm == Algorithm::automatic && communicator.size > 1 &&
         collective.buffer.size.value > 0;
}

int even_ranks_per_node(const Platform& platform, const std::vector<int>& endpoints) {
  std::vector<int> runs;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const bool same = i > 0 && platform.node_of(endpoints[i]) == platform.node_of(endpoints[i - 1]);
    same ? ++runs.back() : (runs.push_back(1), 0);
  }
  return std::all_of(runs.begin(), runs.end(), [&](int run) { return run == runs.front(); }) ? runs.front()
                                                                                             : 1;
}

Communicator communicator(const Platform& platform, const IdTable<RankId, int>& endpoints,
                          std::vector<RankId> ranks, int size) {
  expects(size > 0 && std::ssize(ranks) % size == 0, "whole groups of ranks");
  Communicator made;
  made.ranks = std::move(ranks);
  made.size = size;
  std::vector<int> one_group;
  int least = size;
  for (std::size_t i = 0; i < made.ranks.size(); ++i) {
    one_group.push_back(endpoints[made.ranks[i]]);
    if (std::ssize(one_group) < size) continue;
    const int here = even_ranks_per_node(platform, one_group);
    if (i + 1 > static_cast<std::size_t>(size) && here != least) least = 1;  // groups of different placement
    if (std::cmp_equal(i + 1, size)) least = here;
    one_group.clear();
  }
  made.ranks_per_node = least;
  return made;
}

std::vector<RankId> first_ranks(int count) {
  std::vector<RankId> ranks;
  for (int rank = 0; rank < count; ++rank) ranks.emplace_back(rank);
  return ranks;
}

}  // namespace stepcast
