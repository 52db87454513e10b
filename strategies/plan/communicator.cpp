#include "strategies/plan/communicator.hpp"

#include <algorithm>
#include <stdexcept>

namespace stepcast {
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
  Communicator made;
  made.ranks = std::move(ranks);
  made.size = size;
  std::vector<int> one_group;
  int least = size;
  for (std::size_t i = 0; i < made.ranks.size(); ++i) {
    one_group.push_back(endpoints[made.ranks[i]]);
    if (static_cast<int>(one_group.size()) < size) continue;
    const int here = even_ranks_per_node(platform, one_group);
    if (i + 1 > static_cast<std::size_t>(size) && here != least) least = 1;  // groups of different placement
    if (i + 1 == static_cast<std::size_t>(size)) least = here;
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
