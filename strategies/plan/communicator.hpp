#pragma once

#include <memory>
#include <vector>

#include "platforms/platform.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// Schedule of a collective of one group. @param choice  algorithm of an all-reduce, not `automatic`
std::shared_ptr<const Schedule> schedule_of(const Collective& collective, const AllReduceChoice& choice,
                                            const Group& group);

/// True if the forecast chooses the collective's algorithm: it is an all-reduce with `all_reduce: automatic`
/// over more than one rank.
bool has_automatic_algorithm(const Plan& plan, const Collective& collective);

/// Number of consecutive ranks on each node that `endpoints` use; 1 if the nodes hold unequal numbers of
/// ranks.
int even_ranks_per_node(const Platform& platform, const std::vector<int>& endpoints);

/// Groups of `size` ranks, with their ranks for each node.
/// @param ranks  indices into `endpoints`, group after group
Communicator communicator(const Platform& platform, const IdTable<RankId, int>& endpoints,
                          std::vector<RankId> ranks, int size);

/// 0, 1, ..., count - 1
std::vector<RankId> first_ranks(int count);

}  // namespace stepcast
